package natsworker_test

import (
	"flag"
	"testing"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

var (
	simRuns = flag.Int("simulate.runs", 40, "how many random runs TestSimulation makes")
	simSeed = flag.Uint64("simulate.seed", 1, "the seed of its first run; 0 takes one from the clock")
	simFor  = flag.Duration("simulate.for", 0, "go on for that long, whatever the number of runs, with real processes too")
)

// modes are what the test binary is as another process.
var modes = map[string]func(){}

func TestMain(m *testing.M) {
	// The server has one clock for all of its files, whose goroutine may not be one of a bubble.
	ats.Register()
	harness.Main(m, modes, harness.Options{})
}

package natstasks_test

import (
	"flag"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

var (
	simRuns = flag.Int("simulate.runs", 10, "how many random runs TestSimulation makes")
	simSeed = flag.Uint64("simulate.seed", 1, "the seed of its first run; 0 takes one from the clock")
	simFor  = flag.Duration("simulate.for", 0, "go on for that long, whatever the number of runs")
)

// modes are what the test binary is as another process.
var modes = map[string]func(){}

func TestMain(m *testing.M) {
	harness.Main(m, modes, harness.Options{Parallel: 8})
}

package natsworker_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// modes are what the test binary is as another process.
var modes = map[string]func(){}

func TestMain(m *testing.M) {
	// The server has one clock for all of its files, whose goroutine may not be one of a bubble.
	ats.Register()
	harness.Main(m, modes, harness.Options{})
}

package natsworker_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/internal/waiting"
)

// modeEnv makes the test binary a worker process; its value is the name of one in children.
const modeEnv = "HBJETSTREAM_TEST_MODE"

var children = map[string]func() error{}

// slack is what is allowed on top of what is promised, on a loaded machine with the race
// detector. Only a test that fails waits as long.
const slack = 30 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		child, ok := children[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	waiting.Parallel(8)
	os.Exit(leftovers.Main(m))
}

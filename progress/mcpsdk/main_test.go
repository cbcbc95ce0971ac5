package mcpsdk_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/internal/waiting"
)

// modeEnv makes the test binary a server over stdio; its value is the name of one in
// childServers.
const modeEnv = "MCPSDK_TEST_MODE"

// slack is what is allowed on top of what is promised, on a loaded machine with one core and
// the race detector.
const slack = 30 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		serve, ok := childServers[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	waiting.Parallel(16)
	os.Exit(leftovers.Main(m))
}

package host_test

import (
	"io"
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/internal/waiting"
)

const childEnv = "HOST_TEST_CHILD"

// The test binary is also each process of a scenario; see roles.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	roles()
	waiting.Parallel(8)
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the children: otherwise each takes a second to exit
	code := leftovers.Main(m)
	removePrograms()
	os.Exit(code)
}

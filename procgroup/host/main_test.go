package host_test

import (
	"io"
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// The test binary is also each process of a scenario; see roles.
func TestMain(m *testing.M) {
	roles()
	child := func() { _, _ = io.Copy(io.Discard, os.Stdin) }
	harness.Main(m, map[string]func(){"child": child}, harness.Options{Parallel: 8, Close: func() { removePrograms() }})
}

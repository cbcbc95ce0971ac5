package natstasks_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// modes are what the test binary is as another process.
var modes = map[string]func(){}

func TestMain(m *testing.M) {
	harness.Main(m, modes, harness.Options{Parallel: 8})
}

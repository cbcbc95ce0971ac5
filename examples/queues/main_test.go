package queues

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// The processes that tests start, by name.
var modes = map[string]func(){}

func TestMain(m *testing.M) { harness.Main(m, modes, harness.Options{Parallel: 8}) }

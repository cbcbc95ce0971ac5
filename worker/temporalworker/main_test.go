package temporalworker_test

import (
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

func TestMain(m *testing.M) {
	os.Exit(leftovers.Main(m))
}

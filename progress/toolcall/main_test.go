package toolcall_test

import (
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/waiting"
)

func TestMain(m *testing.M) {
	waiting.Parallel(16)
	os.Exit(m.Run())
}

package docs_test

import (
	"fmt"
	"os"
	"testing"
)

// The tests of this folder are about the whole repository, so they run in its root.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

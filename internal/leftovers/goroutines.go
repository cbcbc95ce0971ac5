package leftovers

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// Main runs the tests of a package, for its TestMain, and returns the exit code. It is 1 if a
// goroutine that was not there before is still there 20 s after the last test. After fuzzing, which
// leaves goroutines of its own, nothing is checked.
func Main(m *testing.M) int {
	before := runtime.NumGoroutine()
	code := m.Run()
	if code != 0 || flag.Lookup("test.fuzz").Value.String() != "" {
		return code
	}
	if left := Goroutines(before); left != "" {
		fmt.Fprintf(os.Stderr, "FAIL: goroutines left behind by the suite, %d before:\n%s\n", before, left)
		return 1
	}
	return 0
}

// Goroutines waits for goroutines to end until there are at most n. It returns the stacks of all
// if there are still more after 20 s, and "" otherwise.
func Goroutines(n int) string {
	for begun := time.Now(); runtime.NumGoroutine() > n; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			buf := make([]byte, 1<<20)
			return string(buf[:runtime.Stack(buf, true)])
		}
	}
	return ""
}

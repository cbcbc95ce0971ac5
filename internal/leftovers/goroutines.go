package leftovers

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// Main runs the tests of a package, for its TestMain, and returns the exit code. The code is 1 if
// there are still more goroutines than before the tests 20 s after the last test. Main does not
// check after a failure, or after fuzzing, which leaves goroutines behind.
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

// Goroutines waits until there are at most n goroutines, and returns "". If there are still more
// after 20 s, it returns the stacks of all goroutines.
func Goroutines(n int) string {
	for begun := time.Now(); runtime.NumGoroutine() > n; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			buf := make([]byte, 1<<20)
			return string(buf[:runtime.Stack(buf, true)])
		}
	}
	return ""
}

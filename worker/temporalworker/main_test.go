package temporalworker_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 {
		if left := leaked(before); left != "" {
			fmt.Fprintln(os.Stderr, "FAIL: left behind by the suite:\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked returns the stacks of all goroutines if there are still more than before.
func leaked(before int) string {
	for begun := time.Now(); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > slack {
			buf := make([]byte, 1<<20)
			return string(buf[:runtime.Stack(buf, true)])
		}
	}
	return ""
}

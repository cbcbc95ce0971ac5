package mcpsdk_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// modeEnv makes the test binary a server over stdio; its value is the name of one in
// childServers.
const modeEnv = "MCPSDK_TEST_MODE"

// slack is what is allowed on top of what is promised, on a loaded machine with one core and
// the race detector.
const slack = 10 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		serve, ok := childServers[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" { // which leaves a goroutine of its own
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

package natsworker_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// modeEnv makes the test binary a worker process; its value is the name of one in children.
const modeEnv = "HBJETSTREAM_TEST_MODE"

var children = map[string]func() error{}

// slack is what is allowed on top of what is promised, on a loaded machine with the race
// detector.
const slack = 10 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		child, ok := children[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // the tests wait more than they work
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

package harness_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, map[string]func(){
		"echo": func() { fmt.Print(os.Args[1:]) },
		"fail": func() { os.Exit(3) },
		"wait": func() { _, _ = os.Stdin.Read(make([]byte, 1)) },
		"starts": func() { // as a program that runs itself again
			out, err := harness.Command("echo", "again").Output()
			fmt.Printf("%s %v", out, err)
		},
	}, harness.Options{Parallel: 3})
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		mode string
		args []string
		want string
		code int
	}{
		{"echo", []string{"-a", "b"}, "[-a b]", 0},
		{"fail", nil, "", 3},
		{"starts", nil, "[again] <nil>", 0},
		{"none", nil, "no such mode: none\n", 2},
	} {
		t.Run(c.mode, func(t *testing.T) {
			cmd := harness.Command(c.mode, c.args...)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); string(out) != c.want || code != c.code {
				t.Errorf("%q, exit code %d, want %q and %d", out, code, c.want, c.code)
			}
		})
	}
}

func TestLeaks(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T) (end func()){
		"goroutines": func(*testing.T) func() {
			end := make(chan struct{})
			for range 3 { // of those that were there before, some may have ended since
				go func() { <-end }()
			}
			return func() { close(end) }
		},
		"descriptors": func(t *testing.T) func() {
			f, err := os.Open(".")
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		},
		"processes": func(t *testing.T) func() {
			cmd := harness.Command("wait")
			in, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() { in.Close(); _ = cmd.Wait() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/proc/self/fd"); err != nil && name != "goroutines" {
				t.Skip("without /proc")
			}
			left := harness.Leaks()
			end := leave(t)
			if what := left(); !strings.Contains(what, name) {
				t.Errorf("said to be left: %q", what)
			}
			end()
			harness.Eventually(t, "nothing to be left", func() bool { return left() == "" })
		})
	}
}

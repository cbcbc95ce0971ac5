//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestStacks proves that a limit has programs write their stacks with --stacks, the youngest first, before it sends its
// signal; that the outcome stays the limit's; and that nobody else gets a signal (SPEC 6.22).
func TestStacks(t *testing.T) {
	t.Parallel()
	bin := ours(t) // and it hangs, see hang
	hang := filepath.Join(bin, "hang")
	noise := regexp.MustCompile(`(?m)^(?:deadline:   .*|.*fp=0x.*|\t.*|)\n`)
	for _, c := range []struct {
		name, script string
		status       string
		parts        []string // of stderr, in this order
		stacks       int
		ready        string // see waits
	}{
		{"total", "exec deadline -v --stacks .2 HANG", "exit status 124",
			[]string{"SIGQUIT: quit", ".hangsHere", "deadline: had command ", " write its stacks", "deadline: sending signal TERM"}, 1, "READY=up"},
		{"idle", "exec deadline -v --stacks --idle .2 60 HANG", "exit status 124",
			[]string{"deadline: no output", "SIGQUIT: quit", ".hangsHere", "deadline: sending signal TERM"}, 1, "READY=up"},
		{"kill", "exec deadline --stacks -s KILL --idle .2 60 HANG", "signal: killed", []string{"SIGQUIT: quit", ".hangsHere"}, 1, "READY=up"},
		{"preserved", "exec deadline -p --stacks .2 HANG", "exit status 2", []string{"SIGQUIT: quit"}, 1, "READY=up"},
		{"through its parent", "exec deadline --stacks .2 HANG x", "exit status 124",
			[]string{"SIGQUIT: quit", ".hangsHere", "child: exit status 2", "SIGQUIT: quit", ".hangsHere"}, 2, "READY=up"},
		{"of a shell's child", "exec deadline --stacks .2 sh -c 'HANG; exit 3'", "exit status 124", []string{"SIGQUIT: quit"}, 1, "READY=up"},
		{"outside the group", "exec deadline --stacks .2 sh -c 'setsid HANG & p=$!; trap \"kill $p; exit 3\" TERM; wait $p'", "exit status 124", nil, 0, "READY=up"},
		{"foreground", "exec deadline -f --stacks .2 sh -c 'HANG & p=$!; trap \"kill $p; exit 3\" TERM; wait $p'", "exit status 124", nil, 0, "READY=up"},
		{"nobody", "exec deadline -v --stacks .2 sh -c 'trap \"echo QUIT >&2\" QUIT; sleep 60'", "exit status 124", []string{"deadline: sending signal TERM"}, 0, "READY=3"},
		{"a signal and no limit", "deadline --stacks 60 HANG & until [ -e up ]; do sleep .01; done; kill $!; wait $!", "exit status 143", nil, 0, "READY=up"},
		{"its own end", "exec deadline --stacks 60 sh -c 'exit 3'", "exit status 3", nil, 0, "READY="},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// Programs have 0.2 s to write their stacks, which may be over before they get the processor, but not each time.
			for try := 1; ; try++ {
				got := runScript(t, bin, strings.ReplaceAll(c.script, "HANG", hang), c.ready)
				missing := ""
				rest := got.Stderr
				for _, part := range c.parts {
					var ok bool
					if _, rest, ok = strings.Cut(rest, part); !ok {
						missing = part
						break
					}
				}
				failed := got.Exit != c.status || got.Stdout != "" || strings.Count(got.Stderr, "SIGQUIT: quit") != c.stacks || strings.Contains(got.Stderr, "QUIT\n") && c.stacks == 0
				if !failed && missing == "" {
					return
				}
				if c.stacks == 0 || try == 5 {
					got.Stderr = noise.ReplaceAllString(got.Stderr, "")
					t.Fatalf("no %q in\n%+v", missing, got)
				}
			}
		})
	}
}

// hang starts another one of itself for each argument, and passes on what that writes.
func hang(args []string) {
	if len(args) > 0 {
		cmd := exec.Command(os.Args[0], args[1:]...)
		out, err := cmd.CombinedOutput()
		os.Stderr.Write(out)
		println("child:", err.Error())
	} else if err := os.WriteFile("up", nil, 0o600); err != nil {
		panic(err)
	}
	hangsHere()
}

//go:noinline
func hangsHere() { time.Sleep(time.Hour) }

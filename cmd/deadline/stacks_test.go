//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStacks proves that a limit has programs write their stacks with --stacks, the youngest first, before it sends its
// signal; that the outcome stays the limit's; and that nobody else gets a signal (SPEC 6.22).
func TestStacks(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	dir := t.TempDir()
	// It starts another one of itself for each argument, and passes on what that writes.
	if err := os.WriteFile(filepath.Join(dir, "hang.go"), []byte(`package main

import (
	"os"
	"os/exec"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		cmd := exec.Command(os.Args[0], os.Args[2:]...)
		out, err := cmd.CombinedOutput()
		os.Stderr.Write(out)
		println("child:", err.Error())
	}
	hangsHere()
}

//go:noinline
func hangsHere() { time.Sleep(time.Hour) }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	hang := filepath.Join(dir, "hang")
	if out, err := exec.Command("go", "build", "-o", hang, filepath.Join(dir, "hang.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	noise := regexp.MustCompile(`(?m)^(?:deadline:   .*|.*fp=0x.*|\t.*|)\n`)
	for _, c := range []struct {
		name, script string
		status       string
		parts        []string // of stderr, in this order
		stacks       int
	}{
		{"total", "exec deadline -v --stacks 12 HANG", "exit status 124",
			[]string{"SIGQUIT: quit", "main.hangsHere", "deadline: had command ", " write its stacks", "deadline: sending signal TERM"}, 1},
		{"idle", "exec deadline -v --stacks --idle 12 60 HANG", "exit status 124",
			[]string{"deadline: no output", "SIGQUIT: quit", "main.hangsHere", "deadline: sending signal TERM"}, 1},
		{"kill", "exec deadline --stacks -s KILL --idle 12 60 HANG", "signal: killed", []string{"SIGQUIT: quit", "main.hangsHere"}, 1},
		{"preserved", "exec deadline -p --stacks 12 HANG", "exit status 2", []string{"SIGQUIT: quit"}, 1},
		{"through its parent", "exec deadline --stacks 16 HANG x", "exit status 124",
			[]string{"SIGQUIT: quit", "main.hangsHere", "child: exit status 2", "SIGQUIT: quit", "main.hangsHere"}, 2},
		{"of a shell's child", "exec deadline --stacks 12 sh -c 'HANG; exit 3'", "exit status 124", []string{"SIGQUIT: quit"}, 1},
		{"outside the group", "exec deadline --stacks 12 sh -c 'setsid HANG & p=$!; trap \"kill $p; exit 3\" TERM; wait $p'", "exit status 124", nil, 0},
		{"foreground", "exec deadline -f --stacks 12 sh -c 'HANG & p=$!; trap \"kill $p; exit 3\" TERM; wait $p'", "exit status 124", nil, 0},
		{"nobody", "exec deadline -v --stacks 12 sh -c 'trap \"echo QUIT >&2\" QUIT; sleep 60'", "exit status 124", []string{"deadline: sending signal TERM"}, 0},
		{"a signal and no limit", "deadline --stacks 60 HANG & sleep 3; kill $!; wait $!", "exit status 143", nil, 0},
		{"its own end", "exec deadline --stacks 60 sh -c 'exit 3'", "exit status 3", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// Programs have 0.2 s to write their stacks, which may be over before they get the processor, but not each time.
			for try := 1; ; try++ {
				got := runScript(t, bin, strings.ReplaceAll(c.script, "HANG", hang))
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

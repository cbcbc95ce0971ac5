package procgroup_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
	"golang.org/x/sys/unix"
)

// SPEC 6.11: a command that waits for a file system which does not answer is stopped in time, and keeps nothing of this
// process. That of its standard input did not answer before the start.
func TestHungFileSystem(t *testing.T) {
	const limit, grace = time.Hour, 200 * time.Millisecond
	containments := []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper}
	ends := []string{"limit", "abort", "own end"}
	for i, row := range []struct{ name, script string }{
		{"reads", `exec cat "$HUNG"`},
		{"reads below", `cat "$HUNG" & echo ready; read x`},
		{"runs", `"$PROGRAM" 60 & cat "$HUNG" & read x`},
		{"works there", `cd "$DIR" && { cat "$HUNG" & } && read x`},
		{"reads in a daemon", `setsid sh -c 'cat "$HUNG"' & read x`},
		{"stdin", `read x <"$FIFO"`},
	} {
		name, script := row.name, row.script
		for j, c := range containments {
			for k, end := range ends {
				if !*soak && (i+j+k)%len(ends) > 0 { // each script in each containment, with one of the ends
					continue
				}
				if name == "reads" && end == "own end" {
					continue // it cannot be killed before the server answers or is gone
				}
				t.Run(name+"/"+string(c)+"/"+end, func(t *testing.T) {
					if c == procgroup.Cgroup {
						needCgroup(t)
					}
					t.Parallel()
					h := mountHungFS(t)
					cmd := exec.Command("sh", "-c", script)
					cmd.Env = append(cmd.Environ(), "HUNG="+h.path("hung"), "DIR="+h.dir, "PROGRAM="+h.path("/bin/sleep"))
					in, w := io.Pipe()
					defer w.Close()
					cmd.Stdin = in
					if name == "stdin" {
						fifo := filepath.Join(t.TempDir(), "fifo")
						if err := unix.Mkfifo(fifo, 0o600); err != nil {
							t.Fatal(err)
						}
						f, err := os.OpenFile(fifo, os.O_RDWR, 0)
						if err != nil {
							t.Fatal(err)
						}
						defer f.Close()
						go func() { _, _ = io.Copy(f, in) }()
						stdin := h.open(t, "hung")
						cmd.Stdin, cmd.Env = stdin, append(cmd.Env, "FIFO="+fifo)
						h.hang()
					}
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					mock := clock.NewMock()
					opts := []procgroup.Option{
						procgroup.WithContainment(c), procgroup.WithKillGrace(grace), procgroup.WithAbortGrace(grace), procgroup.WithStacks(),
						procgroup.Activity{CPU: true, IO: true},
						procgroup.WithLimits(timeout.Config{Total: limit, Idle: limit}), procgroup.WithOptions(timeout.WithClock(mock)),
					}
					p, err := procgroup.Start(ctx, cmd, opts...)
					if err != nil {
						t.Fatal(err)
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						_, _ = p.Wait()
					}()
					hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
					defer hung.Stop()
					select {
					case <-h.reads:
					case <-done:
						t.Fatal(p.Wait())
					}
					mock.Add(limit / 4) // work is looked for
					switch end {
					case "limit":
						mock.Add(limit)
					case "abort":
						cancel()
					case "own end":
						_, _ = io.WriteString(w, "x\n")
					}
					r, _ := p.Wait()
					if r.Input != (procgroup.InputWait{}) && (name == "reads" || r.Input.Certain) {
						t.Errorf("%v, but it waits for the file system", r.Input)
					}
				})
			}
		}
	}
}

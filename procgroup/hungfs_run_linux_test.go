package procgroup_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
	"golang.org/x/sys/unix"
)

// SPEC 6.11: a command that waits for a file system which does not answer is stopped in time, and keeps nothing of this
// process. That of its standard input did not answer before the start.
func TestHungFileSystem(t *testing.T) {
	const limit, grace = 3 * time.Second, 200 * time.Millisecond // a wait for input is looked for in the meantime
	for name, script := range map[string]string{
		"reads":             `exec cat "$HUNG"`,
		"reads below":       `cat "$HUNG" & echo ready; read x`,
		"runs":              `"$PROGRAM" 60 & cat "$HUNG" & read x`,
		"works there":       `cd "$DIR" && { cat "$HUNG" & } && read x`,
		"reads in a daemon": `setsid sh -c 'cat "$HUNG"' & read x`,
		"stdin":             `read x <"$FIFO"`,
	} {
		for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
			for _, end := range []string{"limit", "abort", "own end"} {
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
					opts := []procgroup.Option{
						procgroup.WithContainment(c), procgroup.WithKillGrace(grace), procgroup.WithAbortGrace(grace), procgroup.WithStacks(),
						procgroup.Activity{CPU: true, IO: true},
						procgroup.WithLimits(timeout.Config{Total: time.Minute, Idle: 30 * time.Second}),
					}
					if end == "limit" {
						opts = append(opts, procgroup.WithLimits(timeout.Config{Total: limit, Idle: limit}))
					}
					begun := time.Now()
					p, err := procgroup.Start(ctx, cmd, opts...)
					if err != nil {
						t.Fatal(err)
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						_, _ = p.Wait()
					}()
					minute := time.After(time.Minute)
					select {
					case <-h.reads:
					case <-done:
						t.Fatal(p.Wait())
					case <-minute:
						t.Fatal("it does not read")
					}
					switch end {
					case "limit":
						begun = begun.Add(limit)
					case "abort":
						begun = time.Now()
						cancel()
					case "own end":
						begun = time.Now()
						_, _ = io.WriteString(w, "x\n")
					}
					select {
					case <-done:
					case <-minute:
						t.Fatal("it has not returned after a minute")
					}
					r, err := p.Wait()
					if took := time.Since(begun); took > grace+time.Second+slack {
						t.Errorf("it took %v: %v", took, err)
					}
					if r.Input != (procgroup.InputWait{}) && (name == "reads" || r.Input.Certain) {
						t.Errorf("%v, but it waits for the file system", r.Input)
					}
				})
			}
		}
	}
}

package procgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.11: a command whose directory, program or socket is on a file system that does not answer is not started, and
// keeps no other command from being started.
func TestHungStart(t *testing.T) {
	for what, place := range map[string]func(cmd *exec.Cmd, below string){
		"dir":                func(cmd *exec.Cmd, below string) { cmd.Dir = below },
		"path":               func(cmd *exec.Cmd, below string) { cmd.Path = below },
		"path below the dir": func(cmd *exec.Cmd, below string) { cmd.Dir, cmd.Path = filepath.Dir(below), "./hung" },
		"socket":             nil,
	} {
		for _, end := range []string{"limit", "abort", "command's context"} {
			t.Run(what+"/"+end, func(t *testing.T) {
				dir := t.TempDir()
				below := filepath.Join(dir, "hung")
				if place == nil {
					t.Setenv("TMPDIR", below)
				} else {
					t.Parallel()
				}
				asked := mountHungFS(t, dir)
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				own, mock := context.Context(ctx), clock.NewMock()
				config := timeout.Config{Total: time.Hour}
				cmd := exec.Command("/bin/true")
				if end == "command's context" {
					own, cmd = context.Background(), exec.CommandContext(ctx, "/bin/true")
				}
				if place != nil {
					place(cmd, below)
				}
				done := make(chan error, 1)
				go func() {
					_, err := procgroup.Run(own, cmd, procgroup.Limits(config), procgroup.WithOptions(timeout.WithClock(mock)), procgroup.Group,
						procgroup.Notify{Socket: place == nil})
					done <- err
				}()
				<-asked
				if _, err := procgroup.Run(context.Background(), exec.Command("/bin/true")); err != nil {
					t.Error("another command:", err)
				}
				if end == "limit" {
					mock.Add(config.Total)
				} else {
					cancel(errors.New("enough"))
				}
				select {
				case err := <-done:
					var stop *timeout.Error
					if !errors.As(err, &stop) || stop.Timeout() != (end == "limit") {
						t.Error(err)
					}
					if cmd.Process != nil {
						t.Error("it was started")
					}
				case <-time.After(time.Minute):
					t.Fatal("it has not returned after a minute")
				}
			})
		}
	}
}

// commandEnds are a script that ends by itself, and one that a limit has to end.
var commandEnds = []string{"echo a; exit 3", "echo a; exec sleep 60"}

// endsAs runs such a command.
func endsAs(t *testing.T, script string, cmd *exec.Cmd, opts ...procgroup.Option) (*procgroup.Result, error) {
	t.Helper()
	hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
	defer hung.Stop()
	if script == commandEnds[0] {
		return procgroup.Run(context.Background(), cmd, append(opts, procgroup.Stop{Grace: 100 * time.Millisecond})...)
	}
	return atLimit(t, "a", cmd, append(opts, procgroup.Stop{Grace: 100 * time.Millisecond})...)
}

// SPEC 6.11: what is asked about the standard input before the start is asked once, counted, and holds up nothing.
func TestUnansweredInput(t *testing.T) {
	for _, name := range []string{"OwnFile", "IsDevice"} {
		for _, end := range commandEnds {
			t.Run(name+"/"+end, func(t *testing.T) {
				release, asked := make(chan struct{}), new(atomic.Int32)
				hook := func(question string, pid int) {
					if question == name {
						asked.Add(1)
						<-release
					}
				}
				in, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer procfs.Stall.Store(nil)
				defer close(release)
				procfs.Stall.Store(&hook)
				cmd := exec.Command("sh", "-c", end)
				cmd.Stdin = in
				r, err := endsAs(t, end, cmd)
				if r == nil {
					t.Fatal(err)
				}
				if r.Unanswered != 1 || asked.Load() != 1 {
					t.Errorf("%d are unanswered, asked %d times", r.Unanswered, asked.Load())
				}
			})
		}
	}
}

// SPEC 6.11: a file for the output that is on a file system which does not answer keeps nothing from ending: neither its
// command, nor another one with the same directory.
func TestHungSpill(t *testing.T) {
	for _, end := range commandEnds {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir, err := procgroup.NewSpillDir(parent, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dir.Close() }) // when the file system is gone
			asked := mountHungFS(t, parent)
			for range 2 {
				r, err := endsAs(t, end, exec.Command("sh", "-c", end), procgroup.Capture{Spill: dir})
				if r == nil {
					t.Fatal(err)
				}
				if r.Spill.Err == nil || strings.TrimSpace(string(r.Stdout.Bytes())) != "a" {
					t.Errorf("%+v, %q", r.Spill, r.Stdout.Bytes())
				}
			}
			<-asked
		})
	}
}

// spill runs a command whose output fills a directory of two bytes, and returns the path of its file.
func spill(t *testing.T, dir *procgroup.SpillDir) string {
	t.Helper()
	r, err := procgroup.Run(context.Background(), exec.Command("echo", "a"), procgroup.Capture{Spill: dir})
	if err != nil || r.Spill.Err != nil {
		t.Fatal(err, r)
	}
	return r.Spill.Path
}

// SPEC 6.11: what uses a path of the caller's before or after a command ends though the file system never answers.
func TestHungPath(t *testing.T) {
	spills := func(t *testing.T, parent string) (*procgroup.SpillDir, string) {
		dir, err := procgroup.NewSpillDir(parent, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dir.Close() }) // when the file system is gone
		return dir, spill(t, dir)
	}
	for _, tt := range []struct {
		name string
		call func(t *testing.T, parent string, hang func()) error
	}{
		{"Listen", func(t *testing.T, parent string, hang func()) error {
			t.Setenv("TMPDIR", parent)
			hang()
			_, err := procgroup.Listen()
			return err
		}},
		{"NewSpillDir", func(t *testing.T, parent string, hang func()) error {
			hang()
			_, err := procgroup.NewSpillDir(parent, 0)
			return err
		}},
		{"SpillDir.Remove", func(t *testing.T, parent string, hang func()) error {
			dir, path := spills(t, parent)
			t.Cleanup(func() { // when the file system is gone, the removal is completed
				harness.Eventually(t, "the removal", func() bool { return patient.Unanswered(path) == 0 })
				spill(t, dir)
			})
			hang()
			return dir.Remove(path)
		}},
		{"SpillDir.Close", func(t *testing.T, parent string, hang func()) error {
			dir, _ := spills(t, parent)
			hang()
			return dir.Close()
		}},
		{"Attach", func(t *testing.T, parent string, hang func()) error {
			cmd := exec.CommandContext(context.Background(), "/bin/true")
			cmd.Dir = parent
			hang()
			procgroup.Attach(cmd)
			return cmd.Start()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "Listen" { // which sets the environment
				t.Parallel()
			}
			above := t.TempDir()
			parent := filepath.Join(above, "parent")
			if err := os.Mkdir(parent, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // when the file system is gone, late directories are made and removed
				harness.Eventually(t, "the end of the call", func() bool { return patient.Unanswered(parent) == 0 })
			})
			late := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
			defer late.Stop()
			var asked chan struct{}
			err := tt.call(t, parent, func() { asked = mountHungFS(t, above) })
			<-asked
			if !errors.Is(err, patient.ErrNoAnswer) {
				t.Error(err)
			}
		})
	}
}

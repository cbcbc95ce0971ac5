package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// hung is a limit that only says that something hangs.
const hung = 5 * time.Minute

// onTerminal starts a shell script in a terminal of its own.
func onTerminal(t *testing.T, script string, opts ...procgroup.Option) *procgroup.Process {
	t.Helper()
	return startOnTerminal(t, exec.Command("sh", "-c", script), opts...)
}

func startOnTerminal(t *testing.T, cmd *exec.Cmd, opts ...procgroup.Option) *procgroup.Process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p, err := procgroup.Start(ctx, cmd, append([]procgroup.Option{procgroup.Terminal{Rows: 24, Cols: 80}, procgroup.Limits{Total: hung}}, opts...)...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_, _ = p.Wait()
	})
	return p
}

// needs skips a test where a program is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(p, "is not installed")
		}
	}
}

// everyContainment runs a test with every containment.
func everyContainment(t *testing.T, f func(t *testing.T, opt procgroup.Option)) {
	t.Run("group", func(t *testing.T) { f(t, procgroup.Group) })
	eachContainment(t, f)
}

// SPEC 6.19: a command has a terminal of the given size, which blocks, has nothing else open, and is the controlling
// terminal of its session, with any containment.
func TestTerminal(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		const script = `test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty && set -- $(cat /proc/$$/stat) &&
			test $6 = $$ && test $8 = $$ && echo session
			for fd in 0 1 2; do grep flags /proc/$$/fdinfo/$fd; done
			ls -l /proc/$$/fd 2>/dev/null | grep -c 'pts\|ptmx'; echo err >&2`
		p := startOnTerminal(t, exec.Command("dash", "-c", script), opt, procgroup.Terminal{Rows: 33, Cols: 80})
		r, err := p.Wait()
		if err != nil {
			t.Fatal(err, r)
		}
		lines := strings.Split(strings.TrimSpace(r.Stdout.String()), "\r\n")
		if len(lines) != 7 || lines[0] != "33 80" || lines[1] != "session" || lines[5] != "3" || lines[6] != "err" {
			t.Errorf("output %q", r.Stdout)
		}
		for _, line := range lines[2:min(5, len(lines))] {
			flags, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, "flags:")), 8, 64)
			if err != nil || flags&syscall.O_NONBLOCK != 0 {
				t.Errorf("%q does not block: %v", line, err)
			}
		}
		if r.Combined.String() != r.Stdout.String() || r.Stderr.Total != 0 || r.PipeHeld || len(r.Survivors) > 0 {
			t.Errorf("result %+v", r)
		}
	})
}

// SPEC 6.19: nothing that a command prints to its terminal is lost when it ends at once.
func TestTerminalLosesNothing(t *testing.T) {
	t.Parallel()
	const runs = 40
	var want strings.Builder
	for i := 1; i <= 400; i++ {
		fmt.Fprintf(&want, "%d\r\n", i)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(runs) && !t.Failed(); n = next.Add(1) {
				var opts []procgroup.Option
				if n%4 == 0 {
					opts = append(opts, procgroup.Stop{Orphans: true})
				}
				var written strings.Builder
				cmd := exec.Command("seq", "400")
				cmd.Stdout = &written
				r, err := procgroup.Run(context.Background(), cmd, append(opts, procgroup.Terminal{Rows: 24, Cols: 80})...)
				if err != nil || r.PipeHeld || r.Stdout.String() != want.String() || written.String() != want.String() {
					t.Errorf("run %d: %v, held %v, %d bytes, %d written, want %d", n, err, r.PipeHeld, r.Stdout.Total, written.Len(), want.Len())
				}
			}
		})
	}
	workers.Wait()
}

// With Orphans what runs on after the leader is not ended by the terminal; without it, nothing runs on.
func TestTerminalOrphans(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		for _, orphans := range []bool{true, false} {
			opts := []procgroup.Option{procgroup.Terminal{Rows: 24, Cols: 80}, opt}
			if orphans {
				opts = append(opts, procgroup.Stop{Orphans: true})
			}
			r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 60 & echo $!; (: </dev/tty) 2>/dev/null && echo controlled"), opts...)
			pid, controlled, _ := strings.Cut(r.Stdout.String(), "\r\n")
			n, _ := strconv.Atoi(pid)
			if n == 0 || (controlled != "") == orphans {
				t.Fatalf("%v, output %q", err, r.Stdout)
			}
			if !orphans {
				undying(r.Survivors) // what was killed may die late
			}
			time.Sleep(50 * time.Millisecond) // for a signal that should not be
			if alive(n) != orphans {
				t.Errorf("with orphans %v, it lives: %v", orphans, alive(n))
			}
			if orphans {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
}

// Text that a command prints after it has closed its standard streams and opened its terminal again is in the output.
func TestTerminalOpenedAgain(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "exec </dev/null >/dev/null 2>&1; sleep 0.3; echo late >/dev/tty")
	r, err := p.Wait()
	if err != nil || r.Stdout.String() != "late\r\n" {
		t.Errorf("%v, output %q", err, r.Stdout)
	}
}

// The input is typed, and its end ends the input of the command, in the middle of a line too.
func TestTerminalInput(t *testing.T) {
	t.Parallel()
	const quiet = "stty -echo; echo ready; " // a test types when it has read this
	many := strings.Repeat(strings.Repeat("x", 99)+"\n", 5000)
	for _, tt := range []struct {
		name, script, input, want string
	}{
		{"an unfinished line", quiet + "cat", "a\nb", "a\r\nb"},
		{"one end for each reader", quiet + "cat; read x; echo $x", "a\n\x04b\n", "a\r\nb\r\n"},
		{"a lot", quiet + "wc -c", many, "500000\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(file, []byte(tt.input), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"reader", "StdinPipe", "file"} {
				cmd := exec.Command("bash", "-c", tt.script)
				ready := make(chan struct{})
				var once sync.Once
				var in io.WriteCloser
				switch kind {
				case "reader":
					cmd.Stdin, in = io.Pipe()
				case "StdinPipe":
					var err error
					if in, err = cmd.StdinPipe(); err != nil {
						t.Fatal(err)
					}
				case "file": // it is typed at once
					f, err := os.Open(file)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					cmd.Stdin = f
				}
				p := startOnTerminal(t, cmd, procgroup.Capture{Each: func(c procgroup.Chunk) { once.Do(func() { close(ready) }) }})
				if in != nil {
					<-ready
					_, err := io.WriteString(in, tt.input)
					if err := errors.Join(err, in.Close()); err != nil {
						t.Error(kind, err)
					}
				}
				r, err := p.Wait()
				_, got, _ := strings.Cut(r.Stdout.String(), "ready\r\n")
				if err != nil || got != tt.want {
					t.Errorf("%s: %v, output %q, want %q", kind, err, got, tt.want)
				}
			}
		})
	}
}

// SPEC 6.16: a process that the terminal has stopped in the background is found, unless a shell is at its prompt, which
// can continue it.
func TestTerminalBackground(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) { // the group does not include it
		needs(t, "timeout")
		for _, script := range []string{"timeout 60 cat /dev/tty; :", "timeout 60 stty sane; :"} {
			t.Run(script, func(t *testing.T) {
				t.Parallel()
				r, err := procgroup.Run(t.Context(), exec.Command("bash", "-c", script), opt, procgroup.Terminal{Rows: 24, Cols: 80})
				if !errors.Is(err, procgroup.StoppedByTerminal) || r.Reason != procgroup.StoppedByTerminal || r.ExitCode != timeout.ExitTimeout {
					t.Errorf("%v, %+v", err, r)
				}
			})
		}
	})
	t.Run("at a prompt", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command("bash", "--norc", "-i")
		cmd.Env = append(os.Environ(), "PS1=PROMPT$ ", "HISTFILE=")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		p := startOnTerminal(t, cmd)
		fmt.Fprintln(in, "cat /dev/tty &")
		harness.Eventually(t, "cat to be stopped", func() bool {
			for _, s := range processes() {
				if s.ppid == cmd.Process.Pid && s.state == "T" {
					return true
				}
			}
			return false
		})
		time.Sleep(1500 * time.Millisecond) // in which it would be recognised
		fmt.Fprintln(in, "jobs; kill -9 %1; exit 7\nexit 7")
		r, err := p.Wait()
		if timeout.ExitCode(err) != 7 || r.Reason != procgroup.Exited || !strings.Contains(r.Stdout.String(), "Stopped") {
			t.Errorf("%v, %v", err, r.Stdout)
		}
	})
}

// An option that does not go with a terminal is refused at the start.
func TestTerminalRefuses(t *testing.T) {
	t.Parallel()
	attr := func(a syscall.SysProcAttr) func(*exec.Cmd) { return func(cmd *exec.Cmd) { cmd.SysProcAttr = &a } }
	const leads = " is set, but in a terminal of its own the command leads a session of its own"
	for _, tt := range []struct {
		name    string
		prepare func(*exec.Cmd)
		want    string
	}{
		{"stderr", func(cmd *exec.Cmd) { cmd.Stderr = io.Discard }, `timeout: Terminal="24x80": want cmd.Stderr to be nil or the same as cmd.Stdout`},
		{"Setpgid", attr(syscall.SysProcAttr{Setpgid: true}), "procgroup: SysProcAttr.Setpgid" + leads},
		{"Foreground", attr(syscall.SysProcAttr{Foreground: true}), "procgroup: SysProcAttr.Foreground" + leads},
		{"Setctty", attr(syscall.SysProcAttr{Setctty: true}), "procgroup: SysProcAttr.Setctty" + leads},
		{"Noctty", attr(syscall.SysProcAttr{Noctty: true}), "procgroup: SysProcAttr.Noctty" + leads},
		{"no file", func(cmd *exec.Cmd) { cmd.Stdin = (*os.File)(nil) }, "procgroup: cmd.Stdin: invalid argument"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("true")
			tt.prepare(cmd)
			_, err := procgroup.Run(context.Background(), cmd, procgroup.Terminal{Rows: 24, Cols: 80})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v\nwant %v", err, tt.want)
			}
		})
	}
	for _, opts := range [][]procgroup.Option{{procgroup.Capture{OnePipe: true}}, {procgroup.Helper}} {
		cmd := exec.Command("sh", "-c", "test -t 1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if r, err := procgroup.Run(context.Background(), cmd, append(opts, procgroup.Terminal{Rows: 24, Cols: 80})...); err != nil {
			t.Errorf("%v, %v", err, r)
		}
	}
}

// A writer that fails closes the terminal, so that the command ends.
func TestTerminalWriterFails(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("under nohup the command does not end by SIGHUP")
	}
	t.Parallel()
	cmd := exec.Command("sh", "-c", "while :; do echo y; sleep 0.01; done")
	full := errors.New("full")
	cmd.Stdout = failing{full}
	r, err := procgroup.Run(t.Context(), cmd, procgroup.Terminal{Rows: 24, Cols: 80})
	if !errors.Is(err, full) || r.ExitCode != 128+int(syscall.SIGHUP) || r.Unwritten == 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// SPEC 6.16: a job that a person has stopped is none that the terminal has stopped, and other work goes on.
func TestStoppedJobs(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`set -m; sleep 60 & kill -STOP $!; sleep 2; kill -KILL $!; echo fine`,
		`set -m; cat </dev/tty & sleep 2; kill -KILL $!; echo fine`, // stopped by the terminal, while something else works
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			r, err := procgroup.Run(context.Background(), exec.Command("bash", "-c", script), procgroup.Terminal{Rows: 24, Cols: 80},
				procgroup.Limits{Total: hung})
			if err != nil || !strings.Contains(r.Stdout.String(), "fine") {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
}

//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// hungEnv makes a helper hang before its main, as a program does whose init waits for something. It names a file that it
// makes then.
const hungEnv = "PROCGROUP_TEST_HUNG_HELPER"

func init() {
	if file := os.Getenv(hungEnv); file != "" && os.Getenv("TOOLDEADLINE_HELPER") != "" {
		_ = os.WriteFile(file, nil, 0o600)
		time.Sleep(forever)
	}
}

// SPEC 6.11: a helper that hangs at its start holds up the call no longer than a command
// that hangs: a limit or an abort ends that too.
func TestHelperHangsAtItsStart(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	config := timeout.Config{Total: limit, Grace: 1000 * limit}
	helper := procgroup.Helper
	for _, tt := range []struct {
		name string
		run  func(ctx context.Context, cmd *exec.Cmd, mock timeout.Option) (*procgroup.Result, error)
		is   error
	}{
		{"limit", func(ctx context.Context, cmd *exec.Cmd, mock timeout.Option) (*procgroup.Result, error) {
			return procgroup.Run(ctx, cmd, helper, procgroup.Limits(config), procgroup.WithOptions(mock))
		}, timeout.ErrTotal},
		{"abort", func(ctx context.Context, cmd *exec.Cmd, _ timeout.Option) (*procgroup.Result, error) {
			return procgroup.Run(ctx, cmd, helper)
		}, timeout.ErrAborted},
		{"limit of the execution around", func(ctx context.Context, cmd *exec.Cmd, mock timeout.Option) (r *procgroup.Result, err error) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				r, err = procgroup.Run(ctx, cmd, helper)
				return err
			}, config, mock)
			return r, err
		}, timeout.ErrTotal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mock, hangs := clock.NewMock(), filepath.Join(t.TempDir(), "hangs")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := command("exit", "0")
			cmd.Env = append(cmd.Env, hungEnv+"="+hangs)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if r, err := tt.run(ctx, cmd, timeout.WithClock(mock)); r != nil || !errors.Is(err, tt.is) {
					t.Errorf("%+v, %v; want %v", r, err, tt.is)
				}
			}()
			until(t, "the helper to hang", there(hangs))
			if tt.is == timeout.ErrAborted {
				cancel()
			} else {
				mock.Add(limit)
			}
			<-done
		})
	}
}

// A command that stops its helper and then waits is asked to end like any other, its own
// end is seen within the grace, and it does not outlive the call.
func TestHelperIsStopped(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	for name, tt := range map[string]struct {
		script string
		grace  time.Duration
		want   want
		code   int // of the command itself
	}{
		"stopped": {`trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done`, longLimit, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 3600000ms."}, 3},
		"killed":  {`trap "" TERM; echo ready; while :; do sleep 0.05; done`, shortGrace, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 3600000ms.", escalated: true}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", `read x; kill -STOP $PPID; until grep -q 'T (stopped)' /proc/$PPID/status; do sleep 0.01; done; echo $$; `+tt.script)
			in, err := cmd.StdinPipe() // the helper has to say first that it has started the command
			if err != nil {
				t.Fatal(err)
			}
			mock, s := clock.NewMock(), newSaid("ready")
			p, err := procgroup.Start(context.Background(), cmd, s.in(procgroup.Helper, procgroup.Stop{Grace: tt.grace},
				procgroup.Limits{Total: limit}, procgroup.WithOptions(timeout.WithClock(mock), timeout.WithName("tool")))...)
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			s.wait(t)
			mock.Add(limit)
			r, err := p.Wait()
			check(t, r, err, tt.want)
			if tt.code >= 0 && (r.State == nil || r.State.ExitCode() != tt.code) {
				t.Errorf("state %v", r.State)
			}
			pid, _, _ := strings.Cut(r.Stdout.String(), "\n")
			mustBeDead(t, []int{atoi(pid)})
		})
	}
}

// The error of a command that cannot be started is the same with a helper as without.
func TestHelperGivesTheSameErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, tt := range []struct {
		name string
		cmd  func() *exec.Cmd
		code int
	}{
		{"no path", func() *exec.Cmd { return &exec.Cmd{} }, 127},
		{"no name", func() *exec.Cmd { return exec.Command("") }, 127},
		{"missing", func() *exec.Cmd { return exec.Command(missing) }, 127},
		{"directory", func() *exec.Cmd { return exec.Command(t.TempDir()) }, 126},
		{"no such directory to run in", func() *exec.Cmd { c := exec.Command("/bin/true"); c.Dir = missing; return c }, 1},
		{"a file to run in", func() *exec.Cmd { c := exec.Command("/bin/true"); c.Dir = "/bin/true"; return c }, 126},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, plain := procgroup.Run(context.Background(), tt.cmd(), procgroup.Group)
			_, helped := procgroup.Run(context.Background(), tt.cmd(), procgroup.Helper)
			if plain == nil || helped == nil || numberless(plain) != numberless(helped) {
				t.Errorf("%v; with a helper %v", plain, helped)
			}
			if a, b := timeout.ExitCode(plain), timeout.ExitCode(helped); a != tt.code || b != tt.code {
				t.Errorf("codes %d, with a helper %d; want %d", a, b, tt.code)
			}
		})
	}
}

// numberless is the text of an error without the number of the temporary directory.
func numberless(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// SPEC 6.11: a helper that cannot even be killed holds up nothing, with orphans neither.
// The exit status that it was to give is not made up.
func TestHelperIsUnkillable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, orphans := range []bool{false, true} {
		t.Run(strconv.FormatBool(orphans), func(t *testing.T) {
			t.Parallel()
			freeze, thaw := freezer(t)
			defer thaw()
			// The helper has to be frozen after it has reported the end of the command, and before it is asked to end: while this
			// package waits for the process that holds the pipe, which is not long. So it is tried until that succeeds.
			for frozen := false; !frozen; {
				cmd, pids := family(t, "tree", "hold", "exit", "0")
				opts := []procgroup.Option{procgroup.Helper, procgroup.Stop{Grace: longLimit}}
				if orphans {
					opts = append(opts, procgroup.Stop{Orphans: true})
				}
				p, err := procgroup.Start(context.Background(), cmd, opts...)
				if err != nil {
					t.Fatal(err)
				}
				command := helped(p.Pid, "hold")
				for command > 0 && statReaped(command) {
					time.Sleep(time.Millisecond) // not long, see above
				}
				for rests := 0; rests < 10; rests++ { // the helper has reaped it, and reports that before it rests
					if time.Sleep(time.Millisecond); busyThreads(p.Pid) {
						rests = 0
					}
				}
				frozen = command > 0 && freeze(p.Pid) == nil
				r, err := p.Wait()
				thaw()
				for _, pid := range pids() {
					killPid(pid) // those that may live on
				}
				if frozen = frozen && r.State == nil; frozen && (r.ExitCode != 1 || err == nil || r.Reason != procgroup.Exited || !r.PipeHeld || r.Stdout.Total == 0) {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}

// helped is the command of a helper, 0 if that has gone: the child that has the argument. The orphans of
// a command are children of the helper, too.
func helped(helper int, arg string) int {
	for child, s := range processes() {
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/cmdline")
		if s.ppid == helper && slices.Contains(strings.Split(string(args), "\x00"), arg) {
			return child
		}
	}
	return 0
}

// busyThreads reports whether a thread of a process runs, or would if it got a processor.
func busyThreads(pid int) bool {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	return slices.ContainsFunc(files, func(file string) bool {
		b, _ := os.ReadFile(file)
		return bytes.Contains(b, []byte(") R "))
	})
}

// SPEC 5.1, 6.6: a descendant that cannot be killed is listed, and the command's own exit
// code is kept.
func TestHelperKeepsTheCode(t *testing.T) {
	t.Parallel()
	needRoot(t)
	freeze, thaw := freezer(t)
	defer thaw()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("sh", "-c", "setsid sleep 120 >/dev/null 2>&1 & echo $!; read line; exit 3")
	cmd.Stdin = r
	printed := make(chan int, 1)
	p, err := procgroup.Start(context.Background(), cmd, procgroup.Helper,
		procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) { printed <- atoi(line) })})
	if err != nil {
		t.Fatal(err)
	}
	pid := <-printed
	if err := freeze(pid); err != nil {
		t.Fatal(err)
	}
	w.Close()
	res, err := p.Wait()
	if res.ExitCode != 3 || timeout.ExitCode(err) != 3 || len(res.Survivors) != 1 || res.Survivors[0] != pid {
		t.Errorf("%+v, %v; want code 3 and survivor %d", res, err, pid)
	}
	thaw()
	killPid(pid)
}

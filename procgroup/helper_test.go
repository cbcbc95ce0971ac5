//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// SPEC 6.10: a command that cannot be started is an error at once, the same in each containment.
func TestCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	missing, plain := filepath.Join(dir, "missing"), filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in := func(dir string) func() *exec.Cmd {
		return func() *exec.Cmd { c := exec.Command("/bin/true"); c.Dir = dir; return c }
	}
	of := func(path string) func() *exec.Cmd { return func() *exec.Cmd { return exec.Command(path) } }
	for _, tt := range []struct {
		name string
		cmd  func() *exec.Cmd
		code int
	}{
		{"no path", func() *exec.Cmd { return &exec.Cmd{} }, 127},
		{"no name", of(""), 127},
		{"nowhere in the path", of("no-such-command-anywhere"), 127},
		{"missing", of(missing), 127},
		{"not executable", of(plain), 126},
		{"directory", of(dir), 126},
		{"no such directory to run in", in(missing), 1},
		{"a file to run in", in("/bin/true"), 126},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, want := procgroup.Run(t.Context(), tt.cmd(), procgroup.Group)
			eachContainment(t, func(t *testing.T, opt procgroup.Option) {
				r, err := procgroup.Run(t.Context(), tt.cmd(), opt)
				if r != nil || err == nil || want == nil || err.Error() != want.Error() || timeout.ExitCode(err) != tt.code {
					t.Errorf("%v, %v with code %d; want %v with %d", r, err, timeout.ExitCode(err), want, tt.code)
				}
			})
		})
	}
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

func there(file string) func() bool {
	return func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
}

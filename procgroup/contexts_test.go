//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// tool is the command of a machine, which is started with its context.
func tool() *exec.Cmd { return &exec.Cmd{Path: "/simulated/tool", Args: []string{"tool"}} }

// toolOf is the same for the machine of ctx, with a context of its own.
func toolOf(ctx, command context.Context) *exec.Cmd {
	machine.Of(ctx).(*Machine).Command = command
	return exec.CommandContext(command, "/simulated/tool")
}

var errBudget = errors.New("the user's budget is used up")

// An ending is what a call in a context has led to.
type ending struct {
	After   time.Duration
	Reason  procgroup.Reason
	Code    int
	Message string
	Error   string
	State   int // what the command made of it
}

// SPEC 3.3, 3.11, 3.12, 4.2, 6.8, 6.9: what stops a command comes from its own limits, from executions around it, or from either context, and
// has one outcome, with the cause and the grace that the caller has given it.
func TestContexts(t *testing.T) {
	const limit = 3 * time.Second
	silent := Script{lasts}
	handles := Script{traps(syscall.SIGTERM, exits(3)), lasts}
	beats := Script{complains, sleeps(2 * time.Second), prints, sleeps(2 * time.Second), complains, sleeps(2 * time.Second)}
	own := func(limits timeout.Config) procgroup.Option { return procgroup.Limits(limits) }
	idle, total, long := timeout.Config{Idle: limit}, timeout.Config{Total: limit}, timeout.Config{Total: time.Minute}
	inside := func(limits timeout.Config, run func(context.Context) (*procgroup.Result, error)) func(context.Context) (*procgroup.Result, error) {
		return func(ctx context.Context) (r *procgroup.Result, err error) {
			outer := timeout.Run(ctx, func(ctx context.Context) error {
				r, err = run(ctx)
				return err
			}, limits)
			if timeout.ExitCode(outer) != timeout.ExitCode(err) {
				return nil, fmt.Errorf("%v, and the execution around it: %w", err, outer)
			}
			return r, err
		}
	}
	run := func(opts ...procgroup.Option) func(context.Context) (*procgroup.Result, error) {
		return func(ctx context.Context) (*procgroup.Result, error) { return procgroup.Run(ctx, tool(), opts...) }
	}
	// ofCommand makes ctx the command's, and another Run's.
	ofCommand := func(derive func(context.Context) (context.Context, context.CancelFunc)) func(context.Context) (*procgroup.Result, error) {
		return func(ctx context.Context) (*procgroup.Result, error) {
			of, cancel := derive(context.Background())
			defer cancel()
			return procgroup.Run(ctx, toolOf(ctx, of))
		}
	}
	of := func(derive func(context.Context) (context.Context, context.CancelFunc), run func(context.Context) (*procgroup.Result, error)) func(context.Context) (*procgroup.Result, error) {
		return func(ctx context.Context) (*procgroup.Result, error) {
			ctx, cancel := derive(ctx)
			defer cancel()
			return run(ctx)
		}
	}
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, limit, errBudget)
	}
	passed := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, -1, errBudget)
	}
	cancelled := func(after time.Duration) func(ctx context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			if after == 0 {
				cancel(errBudget)
			}
			timer := time.AfterFunc(after, func() { cancel(errBudget) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		}
	}
	both := func(ctx context.Context) (*procgroup.Result, error) { return procgroup.Run(ctx, toolOf(ctx, ctx)) }
	ofJob := func(ctx context.Context) (*procgroup.Result, error) {
		of, cancel := deadline(context.Background())
		defer cancel()
		var s job.Set
		defer s.Close()
		j, err := s.Start(ctx, toolOf(ctx, of))
		if err != nil {
			return nil, err
		}
		j.Wait(context.Background(), job.Until{})
		return j.Status().Result, j.Status().Err
	}

	idled := ending{limit, procgroup.IdleTimeout, 124, "tool process timed out after 3000ms without output.", "No progress for 3s (idle timeout). tool wrote nothing.", 143}
	out := ending{limit, procgroup.TotalTimeout, 124, "tool process timed out after 3000ms.", "Tool exceeded wall-clock limit of 3s.", 143}
	aborted := ending{limit, procgroup.Aborted, 130, "tool process was aborted.", "Tool was aborted: the user's budget is used up", 137}
	handled := out
	handled.State = 3
	rounded := out
	rounded.After -= 400 * time.Microsecond
	late := func(e ending) ending { // os/exec tells first, and the contexts that know more have a moment to tell themselves
		e.After += 10 * time.Millisecond
		return e
	}
	well := ending{After: 6 * time.Second}
	never := func(code int, text string) ending { return ending{Code: code, Error: text} }
	for _, row := range []struct {
		name   string
		script Script
		run    func(context.Context) (*procgroup.Result, error)
		want   ending
		is     []error
	}{
		{"an execution's idle limit", silent, inside(idle, run()), idled, []error{timeout.ErrIdle}},
		{"an execution's total", silent, inside(total, run()), out, []error{timeout.ErrTotal}},
		{"beats for the execution", beats, inside(idle, run()), well, nil},
		{"the outer idle limit", silent, inside(idle, run(own(long))), idled, []error{timeout.ErrIdle}},
		{"the inner total", silent, inside(long, run(own(total))), out, []error{timeout.ErrTotal}},
		{"the outer total", silent, inside(total, func(ctx context.Context) (*procgroup.Result, error) { // as it was configured, and not what is left
			time.Sleep(time.Second)
			return run(own(timeout.Config{Idle: time.Minute}))(ctx)
		}), out, []error{timeout.ErrTotal}},
		{"beats climb", beats, inside(idle, run(own(long))), well, nil},
		{"a deadline", handles, of(deadline, run()), handled, []error{errBudget, context.DeadlineExceeded, timeout.ErrTotal}},
		{"a deadline in a part of a millisecond", silent, func(ctx context.Context) (*procgroup.Result, error) { // SPEC 3.3
			ctx, cancel := context.WithTimeout(ctx, limit-400*time.Microsecond)
			defer cancel()
			return run()(ctx)
		}, rounded, nil},
		{"a deadline in an execution", handles, inside(long, of(deadline, run())), handled, []error{errBudget, context.DeadlineExceeded}},
		{"a deadline of the command", handles, ofCommand(deadline), late(handled), []error{errBudget, context.DeadlineExceeded}},
		{"a deadline of the command, and a later one", handles, of(func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		}, ofCommand(deadline)), late(handled), []error{errBudget}},
		{"a deadline of both", handles, of(deadline, both), handled, []error{errBudget, context.DeadlineExceeded}},
		{"a deadline of the command in an execution", handles, inside(long, ofCommand(deadline)), late(handled), []error{errBudget}},
		{"a total of the execution of both", silent, inside(total, both), out, []error{timeout.ErrTotal}},
		{"a deadline of a job's command", handles, ofJob, late(handled), []error{errBudget, context.DeadlineExceeded}},
		{"a deadline that has passed", silent, of(passed, run()), never(124, ""), []error{errBudget, context.DeadlineExceeded}},
		{"a deadline of the command that has passed", silent, ofCommand(passed), never(124, ""), []error{errBudget, context.DeadlineExceeded}},
		{"cancelled", silent, of(cancelled(limit), run()), aborted, []error{errBudget, timeout.ErrAborted}},
		{"the command's is cancelled", silent, ofCommand(cancelled(limit)), late(aborted), []error{errBudget, timeout.ErrAborted}},
		{"cancelled from the start", silent, of(cancelled(0), run()), never(130, ""), []error{errBudget, context.Canceled}},
		{"the command's is cancelled from the start", silent, ofCommand(cancelled(0)), never(130, ""), []error{errBudget, timeout.ErrAborted}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, m := time.Now(), New(row.script)
				r, err := row.run(machine.With(context.Background(), m))
				got := ending{Code: timeout.ExitCode(err)}
				if r != nil {
					got = ending{time.Since(begun), r.Reason, r.ExitCode, r.Message, "", m.Code()}
				}
				if err != nil && row.want.Error != "" || r != nil && err != nil {
					got.Error = err.Error()
				}
				if diff := cmp.Diff(row.want, got); diff != "" || timeout.ExitCode(err) != got.Code {
					t.Errorf("%v\n%s", err, diff)
				}
				if lines := m.Trace.Lines(); r == nil && len(lines) > 0 {
					t.Errorf("something was started: %q", lines)
				}
				for _, want := range row.is {
					if !errors.Is(err, want) {
						t.Errorf("%#v is no %v", err, want)
					}
				}
				for _, wrong := range m.Off() {
					t.Error(wrong)
				}
			})
		})
	}
}

// SPEC 3.21: a command that needs more than is left is not started.
func TestNeedOfCommand(t *testing.T) {
	for _, row := range []struct {
		name    string
		limits  timeout.Config
		need    time.Duration
		started bool
	}{
		{"its own total is less", timeout.Config{Total: time.Hour}, time.Hour + 1, false},
		{"the total around is less", timeout.Config{}, 24*time.Hour + 1, false},
		{"enough", timeout.Config{Total: time.Hour}, time.Hour, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(Script{lasts})
				_ = timeout.Run(machine.With(t.Context(), m), func(ctx context.Context) error {
					cmd := tool()
					_, err := procgroup.Run(ctx, cmd, procgroup.Limits(row.limits), procgroup.WithOptions(timeout.Need(row.need)))
					var e *timeout.Error
					if !errors.As(err, &e) || e.Kind != timeout.ErrTotal || e.Tool != "tool" || timeout.ExitCode(err) != 124 {
						t.Errorf("%+v", err)
					} else if (cmd.Process != nil) != row.started || !row.started && (e.Needed != row.need || e.Limit != row.need-1) {
						t.Errorf("started: %v; %+v", cmd.Process != nil, e)
					}
					return nil
				}, timeout.Config{Total: 24 * time.Hour})
				m.Off()
			})
		})
	}
}

//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errBudget = errors.New("the user's budget is used up")

// SPEC 3.12, 6.9: the same deadline has the same outcome, whether it is Run's or exec.CommandContext's, with
// the cause that the caller has given it and with the kill grace.
func TestDeadlineOfEitherContext(t *testing.T) {
	t.Parallel()
	const script = "trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done"
	background := context.Background()
	for name, run := range map[string]func(context.Context) (*procgroup.Result, error){
		"Run": func(ctx context.Context) (*procgroup.Result, error) {
			return procgroup.Run(ctx, exec.Command("sh", "-c", script))
		},
		"CommandContext": func(ctx context.Context) (*procgroup.Result, error) {
			return procgroup.Run(background, exec.CommandContext(ctx, "sh", "-c", script))
		},
		"CommandContext, a later deadline": func(ctx context.Context) (*procgroup.Result, error) {
			later, cancel := context.WithTimeout(background, time.Hour)
			defer cancel()
			return procgroup.Run(later, exec.CommandContext(ctx, "sh", "-c", script))
		},
		"both": func(ctx context.Context) (*procgroup.Result, error) {
			return procgroup.Run(ctx, exec.CommandContext(ctx, "sh", "-c", script))
		},
		"CommandContext in an execution": func(ctx context.Context) (r *procgroup.Result, err error) {
			_ = timeout.Run(background, func(outer context.Context) error {
				r, err = procgroup.Run(outer, exec.CommandContext(ctx, "sh", "-c", script))
				return nil
			}, timeout.Config{Total: time.Hour})
			return r, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(background, 2*time.Second, errBudget)
			defer cancel()
			r, err := run(ctx)
			if !errors.Is(err, errBudget) || !errors.Is(err, context.DeadlineExceeded) || timeout.ExitCode(err) != 124 {
				t.Errorf("%+v", err)
			}
			if r == nil || r.Reason != procgroup.TotalTimeout || r.Escalated || r.State.ExitCode() != 3 {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("a job", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeoutCause(background, 2*time.Second, errBudget)
		defer cancel()
		var s job.Set
		defer s.Close()
		j, err := s.Start(background, exec.CommandContext(ctx, "sh", "-c", script))
		if err != nil {
			t.Fatal(err)
		}
		j.Wait(background, job.Until{})
		if _, err := j.Result(); !errors.Is(err, errBudget) || timeout.ExitCode(err) != 124 {
			t.Errorf("%+v", err)
		}
	})
	t.Run("it had passed", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeoutCause(background, -time.Second, errBudget)
		defer cancel()
		for name, run := range map[string]func() (*procgroup.Result, error){
			"Run":            func() (*procgroup.Result, error) { return procgroup.Run(ctx, exec.Command("true")) },
			"CommandContext": func() (*procgroup.Result, error) { return procgroup.Run(background, exec.CommandContext(ctx, "true")) },
		} {
			if r, err := run(); r != nil || !errors.Is(err, errBudget) || !errors.Is(err, context.DeadlineExceeded) || timeout.ExitCode(err) != 124 {
				t.Errorf("%s: %v, %+v", name, r, err)
			}
		}
	})
	t.Run("cancelled with a cause", func(t *testing.T) {
		t.Parallel()
		for _, early := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(background)
			if early {
				cancel(errBudget)
			} else {
				time.AfterFunc(shortLimit, func() { cancel(errBudget) })
			}
			if _, err := procgroup.Run(background, exec.CommandContext(ctx, "sleep", "60")); !errors.Is(err, errBudget) || timeout.ExitCode(err) != 130 {
				t.Errorf("%+v", err)
			}
			cancel(nil)
		}
	})
}

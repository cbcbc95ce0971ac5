//go:build unix

package toolcall_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.8: a command's message and its output are in the text of the result, in place of the
// execution's message.
func TestTextOfACommand(t *testing.T) {
	t.Parallel()
	const soon = 10 * time.Second // so long may it take until a shell has said something
	const short = 300 * time.Millisecond
	run := func(ctx context.Context, c timeout.Config, script string) error {
		opts := []procgroup.Option{procgroup.WithOptions(timeout.WithName("TLC"))}
		if c != (timeout.Config{}) {
			opts = append(opts, procgroup.WithLimits(c))
		}
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", script), opts...)
		return err
	}
	talk := func(ctx context.Context) error { // too much
		_, err := procgroup.Run(context.WithoutCancel(ctx), exec.Command("sh", "-c", "echo 12 states; sleep 60"), procgroup.WithOptions(timeout.WithName("TLC")), procgroup.WithOutputLimit(6))
		return err
	}
	for _, tc := range []struct {
		name    string
		total   time.Duration // of the tool
		abort   bool
		tool    func(ctx context.Context) error
		partial string
		want    string
	}{
		{"total of the command", 0, false, func(ctx context.Context) error {
			return run(ctx, timeout.Config{Total: soon}, "echo 12 states; sleep 60")
		}, "", "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"},
		{"idle limit of the command", 0, false, func(ctx context.Context) error {
			return run(ctx, timeout.Config{Idle: soon}, "sleep 60")
		}, "", "TLC process timed out after 10000ms without output.\nExit code 124.\n"},
		{"total of the tool", soon, false, func(ctx context.Context) error {
			return run(ctx, timeout.Config{}, "echo 12 states; sleep 60")
		}, "", "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"},
		{"aborted", 0, true, func(ctx context.Context) error {
			return run(ctx, timeout.Config{}, "echo 12 states; sleep 60")
		}, "", "TLC process was aborted.\nExit code 130.\n12 states\n"},
		{"wrapped", 0, false, func(ctx context.Context) error {
			return fmt.Errorf("checking a model: %w", run(ctx, timeout.Config{Total: soon}, "echo 12 states; sleep 60"))
		}, "", "checking a model: TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"},
		{"wrapped, total of the tool", soon, false, func(ctx context.Context) error {
			return errors.Join(errors.New("checking a model"), run(ctx, timeout.Config{}, "echo 12 states; sleep 60"))
		}, "", "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"},
		{"with partial output of the tool", soon, false, func(ctx context.Context) error {
			return run(ctx, timeout.Config{}, "echo 12 states; sleep 60")
		}, "12", "TLC process timed out after 10000ms.\n\nPartial output:\n12"},
		{"with progress", soon, false, func(ctx context.Context) error {
			progress.Report(ctx, progress.Update{Message: "12 states"})
			return run(ctx, timeout.Config{}, "sleep 60")
		}, "", "TLC process timed out after 10000ms.\nlast: 12 states\nExit code 124.\n"},
		{"a command that was stopped before, for another reason", short, false, func(ctx context.Context) error {
			err := run(ctx, timeout.Config{Total: 10 * time.Millisecond}, "sleep 60")
			<-ctx.Done()
			return err
		}, "", "Tool exceeded wall-clock limit of 0.3s."},
		{"a command that was stopped for what it did", 0, false, func(ctx context.Context) error {
			return talk(ctx)
		}, "", "TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"},
		{"the same, wrapped", 0, false, func(ctx context.Context) error {
			return fmt.Errorf("checking a model: %w", talk(ctx))
		}, "", "checking a model: TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"},
		{"a command that was stopped for what it did before the tool was", short, false, func(ctx context.Context) error {
			err := talk(ctx)
			<-ctx.Done()
			return err
		}, "", "Tool exceeded wall-clock limit of 0.3s."},
		{"a command that has failed by itself", 0, false, func(ctx context.Context) error {
			return run(ctx, timeout.Config{}, "exit 3")
		}, "", "exit status 3"},
		{"no command", short, false, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "", "Tool exceeded wall-clock limit of 0.3s."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.abort {
				time.AfterFunc(soon, cancel)
			}
			err := timeout.Run(ctx, tc.tool, timeout.Config{Total: tc.total, Grace: time.Minute})
			if got := toolcall.Text(err, tc.partial); !equalText(tc.want, got) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			want, _, _ := strings.Cut(tc.want, "\nExit code")
			if got := toolcall.Message(err); tc.partial == "" && got != want {
				t.Errorf("message %q, want %q", got, want)
			}
		})
	}
}

// SPEC 6.24, 7.7: a command that was stopped for what it did has an outcome in the result, with the figures of its
// execution.
func TestOutcomeOfACommand(t *testing.T) {
	t.Parallel()
	_, err := procgroup.Run(t.Context(), exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
		procgroup.WithLimits(timeout.Config{Total: time.Minute, Idle: 30 * time.Second}), procgroup.WithOutputLimit(6))
	for _, err := range []error{err, fmt.Errorf("checking a model: %w", err)} {
		o, ok := toolcall.OutcomeOf(err)
		if !ok || o.Elapsed <= 0 || o.LongestGap <= 0 || o.LongestGap > o.Elapsed {
			t.Errorf("%v, %+v", ok, o)
		}
		o.Elapsed, o.LongestGap = 0, 0
		if want := (toolcall.Outcome{Kind: "too_much_output", ExitCode: 153, Total: 60_000, Idle: 30_000, Beats: 1}); o != want {
			t.Errorf("%+v, want %+v", o, want)
		}
	}
	if !adapter.Foreign(err) {
		t.Error("it counts as the tool's own error")
	}
	// A tool that a limit has stopped tells of that.
	stop := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return err }, timeout.Config{Total: 10 * time.Millisecond, Grace: time.Minute})
	if o, _ := toolcall.OutcomeOf(stop); o.Kind != "total" || o.ExitCode != 124 {
		t.Errorf("%+v", o)
	}
}

// equalText compares without what a shell adds to the output of a child that was killed.
func equalText(want, got string) bool {
	got = strings.ReplaceAll(got, "Terminated\n", "")
	return want == got
}

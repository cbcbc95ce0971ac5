//go:build unix

package toolcall_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A runner runs a command with a total, or none. When the command has said something, time passes, or the tool is aborted.
type runner func(ctx context.Context, total time.Duration, script string) error

// SPEC 6.8: a command's message and its output are in the text of the result, in place of the
// execution's message.
func TestTextOfACommand(t *testing.T) {
	const soon = 10 * time.Second        // passes on the mock clock
	const short = 300 * time.Millisecond // and this in fact
	named := procgroup.WithOptions(timeout.WithName("TLC"))
	talk := func(ctx context.Context) error { // too much
		_, err := procgroup.Run(context.WithoutCancel(ctx), exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), named, procgroup.Capture{Limit: 6})
		return err
	}
	for _, tc := range []struct {
		name    string
		total   time.Duration // of the tool
		abort   bool
		tool    func(ctx context.Context, run runner) error
		partial string
		want    string
	}{
		{"total of the command", 0, false, func(ctx context.Context, run runner) error {
			return run(ctx, soon, "echo 12 states; exec sleep 60")
		}, "", "TLC process timed out after 10000ms.\nExit code 124.\n12 states"},
		{"idle limit of the command", 0, false, func(ctx context.Context, _ runner) error {
			_, err := procgroup.Run(ctx, exec.Command("sleep", "60"), named, procgroup.Limits{Idle: short})
			return err
		}, "", "TLC process timed out after 300ms without output.\nExit code 124."},
		{"total of the tool", soon, false, func(ctx context.Context, run runner) error {
			return run(ctx, 0, "echo 12 states; exec sleep 60")
		}, "", "TLC process timed out after 10000ms.\nExit code 124.\n12 states"},
		{"aborted", 0, true, func(ctx context.Context, run runner) error {
			return run(ctx, 0, "echo 12 states; exec sleep 60")
		}, "", "TLC process was aborted.\nExit code 130.\n12 states"},
		{"wrapped", 0, false, func(ctx context.Context, run runner) error {
			return fmt.Errorf("checking a model: %w", run(ctx, soon, "echo 12 states; exec sleep 60"))
		}, "", "checking a model: TLC process timed out after 10000ms.\nExit code 124.\n12 states"},
		{"with progress", soon, false, func(ctx context.Context, run runner) error {
			progress.Report(ctx, progress.Update{Message: "12 states"})
			return run(ctx, 0, "echo; exec sleep 60")
		}, "", "TLC process timed out after 10000ms.\nlast: 12 states\nExit code 124."},
		{"a command that was stopped before, for another reason", short, false, func(ctx context.Context, run runner) error {
			_, err := procgroup.Run(ctx, exec.Command("sleep", "60"), named, procgroup.Limits{Total: time.Millisecond})
			<-ctx.Done()
			return err
		}, "", "Tool exceeded wall-clock limit of 0.3s."},
		{"a command that was stopped for what it did", 0, false, func(ctx context.Context, run runner) error {
			return talk(ctx)
		}, "", "TLC wrote more than 6 bytes.\nExit code 153.\n12 states"},
		{"a command that was stopped for what it did before the tool was", short, false, func(ctx context.Context, run runner) error {
			err := talk(ctx)
			<-ctx.Done()
			return err
		}, "", "Tool exceeded wall-clock limit of 0.3s."},
		{"a command that has failed by itself", 0, false, func(ctx context.Context, run runner) error {
			return run(ctx, 0, "exit 3")
		}, "", "exit status 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			mock := clock.NewMock()
			opts := []timeout.Option{timeout.Config{Total: tc.total, Grace: time.Hour}, timeout.WithClock(mock)}
			if tc.total == short || strings.HasPrefix(tc.name, "idle") {
				opts = opts[:1]
			}
			run := func(ctx context.Context, total time.Duration, script string) error {
				var once sync.Once
				said := procgroup.Capture{Each: func(procgroup.Chunk) {
					once.Do(func() {
						if tc.abort {
							cancel()
						} else {
							go mock.Add(soon)
						}
					})
				}}
				options := []procgroup.Option{named, said}
				if total > 0 {
					options = append(options, procgroup.Limits{Total: total})
				}
				_, err := procgroup.Run(ctx, exec.Command("sh", "-c", script), options...)
				return err
			}
			err := timeout.Run(ctx, func(ctx context.Context) error { return tc.tool(ctx, run) }, opts...)
			if got := toolcall.Text(err, tc.partial); strings.TrimSpace(got) != tc.want {
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
	_, err := procgroup.Run(t.Context(), exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
		procgroup.Limits{Total: time.Minute, Idle: 30 * time.Second}, procgroup.Capture{Limit: 6})
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
	// A tool that a limit has stopped tells of that.
	stop := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return err }, timeout.Config{Total: 10 * time.Millisecond, Grace: time.Minute})
	if o, _ := toolcall.OutcomeOf(stop); o.Kind != "total" || o.ExitCode != 124 {
		t.Errorf("%+v", o)
	}
}

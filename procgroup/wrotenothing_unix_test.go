//go:build unix

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.29: nobody tells a command to call heartbeat(), wherever its limit comes from and whoever asks.
func TestSilentCommandIsNotToldToBeat(t *testing.T) {
	const idle = 300 * time.Millisecond
	const text = "No progress for 0.3s (idle timeout). quiet wrote nothing."
	limits := timeout.Config{Idle: idle}
	run := func(ctx context.Context, opts ...procgroup.Option) error {
		m := New(Script{lasts})
		defer m.Off()
		_, err := procgroup.Run(machine.With(ctx, m), tool(), opts...)
		return err
	}
	for name, call := range map[string]func(opts ...timeout.Option) error{
		"limits of its own": func(opts ...timeout.Option) error {
			return run(context.Background(), procgroup.Limits(limits), procgroup.WithOptions(opts...))
		},
		"limits of the tool": func(opts ...timeout.Option) error {
			var command error
			tool := timeout.Run(context.Background(), func(ctx context.Context) error {
				command = run(ctx, procgroup.WithOptions(opts...))
				return command
			}, limits)
			if tool == nil || tool.Error() != "No progress for 0.3s (idle timeout). Tool should call heartbeat() during long work." {
				t.Errorf("the text of a tool stays to the letter: %v", tool)
			}
			if got := toolcall.Text(tool, ""); !strings.HasPrefix(got, "quiet process timed out after 300ms without output.\n") {
				t.Errorf("the answer of the tool: %q", got)
			}
			return command
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				told := make(map[string]error)
				err := call(timeout.WithName("quiet"), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), timeout.WithHooks(timeout.Hooks{
					Exceeded: func(_ context.Context, s timeout.Snapshot) { told["Exceeded"] = s.Err },
					Finished: func(_ context.Context, s timeout.Snapshot) { told["Finished"] = s.Err },
				}))
				told["Run"] = err
				for who, err := range told {
					if err != nil && err.Error() != text || who != "Exceeded" && err == nil {
						t.Errorf("%s: %v", who, err)
					}
				}
				if !errors.Is(err, timeout.ErrIdle) || timeout.ExitCode(err) != timeout.ExitTimeout {
					t.Errorf("%v, exit code %d", err, timeout.ExitCode(err))
				}
				if !strings.Contains(log.String(), `error.message="`+text) { // the cause may be the tool's
					t.Error(log.String())
				}
				if got := toolcall.Text(err, ""); !strings.HasPrefix(got, "quiet process timed out after 300ms without output.\n") {
					t.Errorf("%q", got)
				}
				if o, ok := toolcall.OutcomeOf(err); !ok || o.Kind != "idle" || o.ExitCode != 124 || o.Limit != 300 {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

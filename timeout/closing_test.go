package timeout_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/timeout"
)

func isClosing(ctx context.Context) bool {
	select {
	case <-timeout.Closing(ctx):
		return true
	default:
		return false
	}
}

// SPEC 3.20 on a clock of one's own.
func TestClosingOnAMockClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := mocked(t, timeout.Config{Total: time.Minute, Reserve: 10 * time.Second}, func(ctx context.Context, mock *clock.Mock) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				mock.Add(50*time.Second - 1)
				if left, ok := timeout.Remaining(ctx); left != 10*time.Second+1 || !ok {
					t.Errorf("%v is left, %t", left, ok)
				}
				if isClosing(ctx) {
					t.Error("closing before its time")
				}
				mock.Add(1)
				if !isClosing(ctx) {
					t.Error("not closing at its time")
				}
				return ctx.Err()
			}, timeout.Config{})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 3.20: a reserve that is not below the total is clamped to half of it, with a warning.
func TestReserveNormalized(t *testing.T) {
	for name, tt := range map[string]struct {
		given   timeout.Config
		want    time.Duration
		warning string
	}{
		"below the total":   {timeout.Config{Total: time.Hour, Reserve: time.Hour - time.Minute}, time.Hour - time.Minute, ""},
		"the total":         {timeout.Config{Total: time.Minute, Reserve: time.Minute}, 30 * time.Second, "reserve 1m0s is not below total timeout 1m0s; using 30s"},
		"above the total":   {timeout.Config{Total: time.Minute, Reserve: time.Hour}, 30 * time.Second, "reserve 1h0m0s is not below total timeout 1m0s; using 30s"},
		"without a total":   {timeout.Config{Reserve: time.Hour}, time.Hour, ""},
		"a negative one":    {timeout.Config{Total: time.Minute, Reserve: -1}, 0, "reserve -1ns is negative; using 0 (no reserve)"},
		"a negative total":  {timeout.Config{Total: -1, Reserve: time.Hour}, time.Hour, "total timeout -1ns is negative; using 0 (no total limit)"},
		"none without more": {timeout.Config{}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := tt.given.Normalize()
			if got.Reserve != tt.want || strings.Join(warnings, "\n") != tt.warning {
				t.Errorf("%v, %q", got.Reserve, warnings)
			}
			var log bytes.Buffer
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				if got := timeout.FromContext(ctx).Snapshot().Limits.Reserve; got != tt.want {
					t.Errorf("enforced: %v", got)
				}
				return nil
			}, tt.given, timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err != nil || !strings.Contains(log.String(), tt.warning) {
				t.Errorf("%v, logged %q", err, log.String())
			}
		})
	}
}

// The end of an inner execution takes it off the enclosing one's list, and does not close the channel.
func TestClosingAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told int
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			var early, late <-chan struct{}
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				early = timeout.Closing(ctx)
				return nil
			}, timeout.WithHooks(timeout.Hooks{Closing: func(context.Context, timeout.Snapshot) { told++ }}))
			var kept context.Context
			_ = timeout.Run(ctx, func(ctx context.Context) error { kept = ctx; return nil })
			late = timeout.Closing(kept)
			timeout.FromContext(ctx).BeginClosing()
			select {
			case <-early:
				t.Error("closing after its end")
			case <-late:
				t.Error("closing after its end")
			default:
			}
			return nil
		}, timeout.Config{})
		if told != 0 {
			t.Errorf("told %d times after the end", told)
		}
	})
}

package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A beat moves the timer on where at most half the idle limit is left until that fires, and
// leaves it alone otherwise. The timer is delayed by an hour, so the limit fires on time if the
// beat has moved it.
func TestBeatRenewsTheTimer(t *testing.T) {
	const idle = 10 * time.Second
	for _, tc := range []struct {
		name   string
		limits timeout.Config
		beat   time.Duration // when it comes
		moved  bool
	}{
		{"early", timeout.Config{Idle: idle}, idle/2 - 1, false},
		{"late enough", timeout.Config{Idle: idle}, idle / 2, true},
		{"just in time", timeout.Config{Idle: idle}, idle - 1, true},
		{"set for the total", timeout.Config{Idle: idle, Total: idle - 1}, idle - 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var fired bool
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					timeout.DelayTimer(ctx, time.Hour)
					time.Sleep(tc.beat)
					heartbeat.Beat(ctx)
					time.Sleep(idle + 1)
					fired = errors.Is(context.Cause(ctx), timeout.ErrIdle)
					return nil
				}, tc.limits)
				if fired != tc.moved {
					t.Errorf("the timer has fired: %v, want %v", fired, tc.moved)
				}
				if !tc.moved {
					return // an hour's delay looks like a stall
				}
				if e := stopped(t, err); e.Elapsed != tc.beat+idle || e.Stalls != 0 {
					t.Errorf("stopped after %v, want %v, and %d stalls", e.Elapsed, tc.beat+idle, e.Stalls)
				}
			})
		})
	}
}

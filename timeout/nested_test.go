package timeout_test

import (
	"context"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The total of an enclosing execution is reported within as it was configured, and not
// as what was left of it; a deadline of the caller's is what is left (SPEC 3.12).
func TestTotalOfTheExecutionAround(t *testing.T) {
	const total, late = 30 * time.Second, time.Second
	for _, tc := range []struct {
		name    string
		outer   timeout.Config
		around  time.Duration // the deadline of the outermost caller, 0 is none
		between time.Duration // a deadline between the two, 0 is none
		inner   timeout.Config
		limit   time.Duration
		elapsed time.Duration // by the inner one
	}{
		{name: "no total of its own", outer: timeout.Config{Total: total}, inner: timeout.Config{Idle: time.Hour}, limit: total, elapsed: 29 * time.Second},
		{name: "a larger total", outer: timeout.Config{Total: total}, inner: timeout.Config{Total: total}, limit: total, elapsed: 29 * time.Second},
		{name: "a total a nanosecond smaller", outer: timeout.Config{Total: total}, inner: timeout.Config{Total: 29*time.Second - 1}, limit: 29*time.Second - 1, elapsed: 29*time.Second - 1},
		{name: "a deadline between", outer: timeout.Config{Total: total}, between: 5 * time.Second, limit: 5 * time.Second, elapsed: 5 * time.Second},
		{name: "a later deadline between", outer: timeout.Config{Total: total}, between: time.Hour, limit: total, elapsed: 29 * time.Second},
		{name: "a deadline around both", outer: timeout.Config{Total: total}, around: 20 * time.Second, limit: 20 * time.Second, elapsed: 19 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.around > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.around)
					defer cancel()
				}
				var inner, innermost error
				_ = timeout.Run(ctx, func(ctx context.Context) error {
					time.Sleep(late)
					if tc.between > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tc.between)
						defer cancel()
					}
					inner = timeout.Run(ctx, func(ctx context.Context) error {
						innermost = timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{})
						return nil
					}, tc.inner)
					return nil
				}, tc.outer)
				for _, err := range []error{inner, innermost} {
					if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Limit != tc.limit || e.Elapsed != tc.elapsed || e.Limits.Total != tc.elapsed {
						t.Errorf("%v: %v, limit %v, elapsed %v, limits %v; want %v after %v", err, e.Kind, e.Limit, e.Elapsed, e.Limits, tc.limit, tc.elapsed)
					}
				}
			})
		})
	}
}

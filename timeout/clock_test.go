package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A shifted is a clock that needs no module.
type shifted struct{ by time.Duration }

func (c shifted) Now() time.Time                                { return time.Now().Add(c.by) }
func (shifted) AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }

var (
	_ = timeout.WithClock(clock.New()) // an interface
	_ = timeout.WithClock(clock.NewMock())
)

// mocked runs fn under a mock clock, which only fn moves: on it beats and limits are exact, whatever the system's time is,
// which goes on by a millisecond whenever the mock does.
func mocked(t *testing.T, config timeout.Config, fn func(ctx context.Context, mock *clock.Mock) error) error {
	t.Helper()
	mock := clock.NewMock()
	return timeout.Run(t.Context(), func(ctx context.Context) error { return fn(ctx, mock) }, config, timeout.WithClock(mock))
}

// SPEC 3.1, 3.5, 3.12 on a clock of one's own. The rules of the simulation also hold for executions on such a clock.
func TestWithClock(t *testing.T) {
	const idle = 10 * time.Second
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	early := func(ctx context.Context) error {
		if ctx.Err() != nil {
			return errors.New("fired early")
		}
		return nil
	}
	for name, tt := range map[string]struct {
		config timeout.Config
		fn     func(ctx context.Context, mock *clock.Mock) error
		want   timeout.Error
	}{
		"idle": {timeout.Config{Idle: idle}, func(ctx context.Context, mock *clock.Mock) error {
			mock.Add(idle - 1)
			heartbeat.Beat(ctx)
			mock.Add(idle - 1)
			err := early(ctx)
			mock.Add(1)
			return errors.Join(err, wait(ctx))
		}, timeout.Error{Kind: timeout.ErrIdle, Limit: idle, Figures: timeout.Figures{Elapsed: 2*idle - 1}}},
		// That deadline is not one of the real time, which is decades ahead.
		"a total around": {timeout.Config{Total: time.Minute}, func(ctx context.Context, mock *clock.Mock) error {
			mock.Add(10 * time.Second)
			return timeout.Run(ctx, func(ctx context.Context) error {
				mock.Add(50*time.Second - 1)
				err := early(ctx)
				mock.Add(1)
				return errors.Join(err, wait(ctx))
			}, timeout.Config{Idle: time.Hour})
		}, timeout.Error{Kind: timeout.ErrTotal, Limit: time.Minute, Figures: timeout.Figures{Elapsed: time.Minute}}},
		"a real deadline of the caller": {timeout.Config{}, func(ctx context.Context, _ *clock.Mock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return timeout.Run(ctx, wait, timeout.WithClock(clock.NewMock()))
		}, timeout.Error{Kind: timeout.ErrTotal, Limit: time.Second}},
		"a real deadline of the caller, which the clock passes first": {timeout.Config{}, func(ctx context.Context, _ *clock.Mock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			mock := clock.NewMock()
			return timeout.Run(ctx, func(ctx context.Context) error { mock.Add(2 * time.Second); return wait(ctx) }, timeout.WithClock(mock))
		}, timeout.Error{Kind: timeout.ErrTotal, Limit: time.Second, Figures: timeout.Figures{Elapsed: time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := mocked(t, tt.config, tt.fn)
				e := stopped(t, err)
				if e.Err != nil && e.Err.Error() == "fired early" {
					t.Error(e.Err)
				}
				if e.Kind != tt.want.Kind || e.Limit != tt.want.Limit || e.Elapsed != tt.want.Elapsed || e.Abandoned != tt.want.Abandoned {
					t.Errorf("%+v", err)
				}
				time.Sleep(time.Hour)
			})
		})
	}
	for name, c := range map[string]timeout.Clock[*time.Timer]{"nil": nil, "shifted": shifted{-time.Hour}} {
		bubble(t, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: time.Second}, timeout.WithClock(c))
			if e := stopped(t, err); e.Elapsed != time.Second {
				t.Errorf("%s: %+v", name, err)
			}
		})
	}
}

type otherKey struct{}

// SPEC 3.14: on a clock that is not the system's, Deadline is the system's now plus what is left. SPEC 3.12: the time that
// an inner execution has left is exact, although its caller's Deadline moves with the system's time.
func TestDeadlineOnAMockClock(t *testing.T) {
	const total = time.Minute
	bubble(t, func(t *testing.T) {
		_ = mocked(t, timeout.Config{Idle: time.Hour}, func(ctx context.Context, _ *clock.Mock) error {
			if d, ok := ctx.Deadline(); ok {
				t.Errorf("a deadline without a total: %v", d)
			}
			return nil
		})
		_ = mocked(t, timeout.Config{Total: total}, func(outer context.Context, mock *clock.Mock) error {
			left := total
			shorter, cancel := context.WithTimeout(outer, 10*time.Millisecond)
			defer cancel()
			<-shorter.Done()
			longer, cancelLonger := context.WithTimeout(outer, time.Hour)
			defer cancelLonger()
			if shorter.Err() != context.DeadlineExceeded || outer.Err() != nil || longer.Err() != nil {
				t.Errorf("%v, %v, %v", shorter.Err(), outer.Err(), longer.Err())
			}
			for _, pass := range []time.Duration{0, 20 * time.Second, 40*time.Second - 1} {
				mock.Add(pass)
				left -= pass
				if d, ok := outer.Deadline(); !ok || time.Until(d) != left || outer.Err() != nil {
					t.Errorf("with %v left: %v, %v, %v", left, time.Until(d), ok, outer.Err())
				}
				for name, ctx := range map[string]context.Context{"as it is": outer, "a value": context.WithValue(outer, otherKey{}, 1), "on another clock": outer} {
					opts := []timeout.Option{timeout.Config{Total: time.Hour}}
					if name == "on another clock" {
						opts = append(opts, timeout.WithClock(clock.NewMock()))
					}
					_ = timeout.Run(ctx, func(ctx context.Context) error {
						if got := timeout.FromContext(ctx).Snapshot().Limits.Total; got != left {
							t.Errorf("%s: %v, want %v", name, got, left)
						}
						return nil
					}, opts...)
				}
			}
			mock.Add(1)
			if d, ok := outer.Deadline(); !ok || time.Until(d) > 0 {
				t.Errorf("after the total: in %v, %v", time.Until(d), ok)
			}
			<-longer.Done()
			if longer.Err() != context.DeadlineExceeded {
				t.Error(longer.Err())
			}
			return nil
		})
		synctest.Wait()
	})
}

// A mock clock that shows another time than the caller's deadline is on.
func TestMockClockAndARealDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	mock := clock.NewMock()
	mock.Set(time.Now().Add(100 * 365 * 24 * time.Hour))
	called := false
	err := timeout.Run(ctx, func(context.Context) error { called = true; return nil }, timeout.WithClock(mock))
	if err != nil || !called {
		t.Errorf("%v, called %v", err, called)
	}
}

package timeout_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var (
	_ timeout.Clock = clock.New()
	_ timeout.Clock = clock.NewMock()
)

// mocked runs fn under a mock clock, which step moves once fn is ready for it. The
// mock runs timers on goroutines of their own, so results are waited for.
func mocked(t *testing.T, config timeout.Config, fn func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error) error {
	t.Helper()
	mock := clock.NewMock()
	steps, stepped := make(chan time.Duration), make(chan struct{})
	go func() {
		for d := range steps {
			mock.Add(d)
			stepped <- struct{}{}
		}
	}()
	defer close(steps)
	step := func(d time.Duration) { steps <- d; <-stepped }
	return timeout.Run(context.Background(), func(ctx context.Context) error { return fn(ctx, mock, step) },
		config, timeout.WithClock(mock))
}

// SPEC 3.1 to 3.7, 3.14, 4.2, 4.6 on a clock of one's own.
func TestWithClock(t *testing.T) {
	const idle = 10 * time.Second
	t.Run("idle at its limit", func(t *testing.T) {
		err := mocked(t, timeout.Config{Idle: idle}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			step(idle - 1)
			heartbeat.Beat(ctx)
			step(idle - 1)
			if ctx.Err() != nil {
				t.Error("fired early")
			}
			step(1)
			<-ctx.Done()
			return errTool
		})
		sameOutcome(t, err, &timeout.Error{
			Kind: timeout.KindIdle, Limit: idle, Elapsed: 2*idle - 1, SinceBeat: idle, LongestGap: idle, Beats: 1, Err: errTool,
		})
	})
	t.Run("total at its limit", func(t *testing.T) {
		err := mocked(t, timeout.Config{Total: time.Minute}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			step(time.Minute - 1)
			if ctx.Err() != nil {
				t.Error("fired early")
			}
			step(1)
			<-ctx.Done()
			return nil
		})
		sameOutcome(t, err, &timeout.Error{
			Kind: timeout.KindTotal, Limit: time.Minute, Elapsed: time.Minute, SinceBeat: time.Minute, LongestGap: time.Minute,
		})
	})
	t.Run("every beat is exact, in bursts too", func(t *testing.T) {
		err := mocked(t, timeout.Config{Idle: idle}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			for range 10_000 {
				heartbeat.Beat(ctx)
			}
			if n := heartbeat.FromContext(ctx).Count(); n != 10_000 {
				t.Errorf("%d beats", n)
			}
			step(idle)
			<-ctx.Done()
			return nil
		})
		if e := stopped(t, err); e.Elapsed != idle {
			t.Errorf("fired after %v", e.Elapsed)
		}
	})
	t.Run("an inner execution inherits it", func(t *testing.T) {
		err := mocked(t, timeout.Config{Idle: idle}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				release := heartbeat.Hold(ctx)
				step(time.Hour)
				release()
				step(idle - 1)
				heartbeat.Beat(ctx)
				step(idle - 1)
				return ctx.Err()
			}, timeout.Config{Idle: idle})
		})
		if err != nil {
			t.Error(err)
		}
	})
	// SPEC 3.12: that deadline is not one of the real time, which is decades ahead.
	t.Run("the total of the execution around is the inner one's deadline", func(t *testing.T) {
		started := false
		err := mocked(t, timeout.Config{Total: time.Minute}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			step(10 * time.Second)
			return timeout.Run(ctx, func(ctx context.Context) error {
				started = true
				step(50*time.Second - 1)
				if ctx.Err() != nil {
					t.Error("fired early")
				}
				step(1)
				<-ctx.Done()
				return nil
			}, timeout.Config{Idle: time.Hour})
		})
		if e := stopped(t, err); !started || e.Kind != timeout.KindTotal || e.Limit != time.Minute || e.Elapsed != time.Minute {
			t.Errorf("%v after %v, started %v", e, e.Elapsed, started)
		}
	})
	t.Run("the grace too", func(t *testing.T) {
		release := make(chan struct{})
		mock := clock.NewMock()
		done := make(chan error)
		started := make(chan struct{})
		go func() {
			done <- timeout.Run(context.Background(), func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				<-release
				return nil
			}, timeout.Config{Total: time.Second, Grace: time.Hour}, timeout.WithClock(mock))
		}()
		<-started
		for {
			select {
			case err := <-done:
				if e := stopped(t, err); !e.Abandoned || mock.Now().Sub(time.Unix(0, 0)) < time.Hour+time.Second {
					t.Errorf("abandoned %v at %v", e.Abandoned, mock.Now())
				}
				close(release)
				return
			default:
				mock.Add(time.Minute)
			}
		}
	})
	t.Run("nil is the standard clock", func(t *testing.T) {
		if err := timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.WithClock(nil)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a real deadline of the caller", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		err := timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{}, timeout.WithClock(clock.NewMock()))
		if !errors.Is(err, timeout.ErrTotal) {
			t.Errorf("%v", err)
		}
	})
}

type otherKey struct{}

// SPEC 3.14: on a clock that is not the system's, Deadline is the system's now plus what is left.
func TestDeadlineOnAMockClock(t *testing.T) {
	const total = time.Minute
	// near reports whether d is what is left from now, give or take what a busy machine needs.
	near := func(d time.Time, left time.Duration) bool {
		off := time.Until(d) - left
		return -20*time.Second < off && off <= 0
	}
	t.Run("both sides of the total", func(t *testing.T) {
		t.Parallel()
		_ = mocked(t, timeout.Config{Total: total}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			for _, tc := range []struct{ pass, left time.Duration }{{0, total}, {20 * time.Second, 40 * time.Second}, {40*time.Second - 1, 1}} {
				step(tc.pass)
				if d, ok := ctx.Deadline(); !ok || !near(d, tc.left) || ctx.Err() != nil {
					t.Errorf("with %v left: %v, %v, %v", tc.left, time.Until(d), ok, ctx.Err())
				}
			}
			step(1)
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > 0 {
				t.Errorf("after the total: in %v, %v", time.Until(d), ok)
			}
			<-ctx.Done()
			return nil
		})
	})
	t.Run("no total", func(t *testing.T) {
		t.Parallel()
		_ = mocked(t, timeout.Config{Idle: time.Hour}, func(ctx context.Context, _ *clock.Mock, _ func(time.Duration)) error {
			if d, ok := ctx.Deadline(); ok {
				t.Errorf("a deadline: %v", d)
			}
			return nil
		})
	})
	t.Run("an inner timeout fires", func(t *testing.T) {
		t.Parallel()
		err := mocked(t, timeout.Config{Total: total}, func(ctx context.Context, _ *clock.Mock, _ func(time.Duration)) error {
			inner, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			<-inner.Done()
			if inner.Err() != context.DeadlineExceeded || ctx.Err() != nil {
				t.Errorf("%v, %v", inner.Err(), ctx.Err())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("a longer inner timeout ends with the total", func(t *testing.T) {
		t.Parallel()
		_ = mocked(t, timeout.Config{Total: total}, func(ctx context.Context, _ *clock.Mock, step func(time.Duration)) error {
			inner, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			step(total - 1)
			if inner.Err() != nil {
				t.Error("fired early")
			}
			step(1)
			<-inner.Done()
			if inner.Err() != context.DeadlineExceeded {
				t.Error(inner.Err())
			}
			return nil
		})
	})
	t.Run("a dial", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		err = mocked(t, timeout.Config{Total: total}, func(ctx context.Context, _ *clock.Mock, step func(time.Duration)) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
			if err != nil {
				t.Errorf("before the total: %v", err)
			} else {
				conn.Close()
			}
			step(total)
			if _, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String()); err == nil {
				t.Error("dialled after the total")
			}
			return nil
		})
		if !errors.Is(err, timeout.ErrTotal) {
			t.Error(err)
		}
	})
	// SPEC 3.12: the time that the inner execution has left is exact, although its caller's
	// Deadline moves with the system's time.
	t.Run("an inner execution", func(t *testing.T) {
		t.Parallel()
		_ = mocked(t, timeout.Config{Total: total}, func(outer context.Context, _ *clock.Mock, step func(time.Duration)) error {
			step(10 * time.Second)
			for name, ctx := range map[string]context.Context{
				"as it is": outer, "a value": context.WithValue(outer, otherKey{}, 1), "on another clock": outer,
			} {
				opts := []timeout.Option{timeout.Config{Total: time.Hour}}
				if name == "on another clock" {
					opts = append(opts, timeout.WithClock(clock.NewMock()))
				}
				_ = timeout.Run(ctx, func(ctx context.Context) error {
					if got := timeout.FromContext(ctx).Snapshot().Limits.Total; got != total-10*time.Second {
						t.Errorf("%s: %v", name, got)
					}
					return nil
				}, opts...)
			}
			ctx, cancel := context.WithTimeout(outer, 30*time.Second)
			defer cancel()
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				got := timeout.FromContext(ctx).Snapshot().Limits.Total
				if got <= 10*time.Second || got > 30*time.Second {
					t.Errorf("a real timeout of 30 s: %v", got)
				}
				return nil
			}, timeout.Config{Total: time.Hour})
			return nil
		})
	})
}

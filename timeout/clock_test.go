package timeout_test

import (
	"context"
	"errors"
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
			Kind: timeout.Idle, Limit: idle, Elapsed: 2*idle - 1, SinceBeat: idle, LongestGap: idle, Beats: 1, Err: errTool,
		})
	})
	t.Run("total at its limit, and its deadline", func(t *testing.T) {
		err := mocked(t, timeout.Config{Total: time.Minute}, func(ctx context.Context, mock *clock.Mock, step func(time.Duration)) error {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(mock.Now().Add(time.Minute)) {
				t.Errorf("deadline %v, %v", d, ok)
			}
			step(time.Minute - 1)
			if ctx.Err() != nil {
				t.Error("fired early")
			}
			step(1)
			<-ctx.Done()
			return nil
		})
		sameOutcome(t, err, &timeout.Error{
			Kind: timeout.Total, Limit: time.Minute, Elapsed: time.Minute, SinceBeat: time.Minute, LongestGap: time.Minute,
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
		if e := stopped(t, err); !started || e.Kind != timeout.Total || e.Limit != time.Minute || e.Elapsed != time.Minute {
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

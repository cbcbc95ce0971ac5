package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 4.2: the inner execution does not hide its heartbeat.
func TestNestedBeatsCountOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var outer *heartbeat.Monitor
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			outer = heartbeat.FromContext(ctx)
			return timeout.Run(ctx, func(ctx context.Context) error {
				return timeout.Run(ctx, func(ctx context.Context) error {
					for range 100 {
						time.Sleep(time.Second - 1)
						heartbeat.Beat(ctx)
					}
					return nil
				}, timeout.Config{})
			}, timeout.Config{Idle: 20 * time.Second})
		}, timeout.Config{Idle: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if outer.Count() != 102 { // two executions started, and a hundred beats
			t.Errorf("%d beats outside, want 102", outer.Count())
		}
	})
}

// The other way round, the outer's beats are no sign of the inner's life.
func TestOuterBeatsDoNotCountInside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(outer context.Context) error {
			return timeout.Run(outer, func(inner context.Context) error {
				for inner.Err() == nil {
					heartbeat.Beat(outer)
					time.Sleep(300 * time.Millisecond)
				}
				return nil
			}, timeout.Config{Idle: time.Second})
		}, timeout.Config{Idle: time.Minute})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Limit != time.Second {
			t.Errorf("%v of %v", e.Kind, e.Limit)
		}
	})
}

// An inner timeout is the outer function's error, and no timeout of the outer.
func TestInnerTimeoutIsAnErrorOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var finished error
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			return timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: time.Second}, timeout.WithName("inner"))
		}, timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished = s.Err }}))
		if e := stopped(t, err); e.Tool != "inner" || timeout.ExitCode(err) != 124 || finished != err {
			t.Errorf("%v, %v", err, finished)
		}
	})
}

// The outer's timeout aborts the inner, which says so and why.
func TestOuterTimeoutAbortsInner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var inner error
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			inner = timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{})
			return inner
		}, timeout.Config{Idle: time.Second})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || errors.Is(err, timeout.ErrAborted) || errors.Is(err, context.Canceled) {
			t.Errorf("outer: %v", err)
		}
		if e := stopped(t, inner); e.Kind != timeout.KindAborted || errors.Is(inner, timeout.ErrIdle) || !errors.Is(e.Cause, timeout.ErrIdle) || timeout.ExitCode(inner) != 130 {
			t.Errorf("inner: %v", inner)
		}
	})
}

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

// The beats of an abandoned inner function are no sign of the outer's life.
func TestAbandonedInnerDoesNotFeedTheOuter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				for range 100 {
					time.Sleep(time.Second)
					heartbeat.Beat(ctx)
				}
				return nil
			}, timeout.Config{Total: time.Second, Grace: time.Second})
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: 10 * time.Second})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Elapsed > 12*time.Second {
			t.Errorf("%v after %v", e.Kind, e.Elapsed)
		}
		time.Sleep(time.Hour)
	})
}

// SPEC 4.6.
func TestHold(t *testing.T) {
	const idle = time.Second
	for _, tc := range []struct {
		name string
		fn   func(ctx context.Context)
		kind timeout.Kind
		at   time.Duration // when it is stopped, or returns
	}{
		{"held", func(ctx context.Context) {
			release := heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
			release()
			time.Sleep(idle - 1)
		}, 0, time.Minute + idle - 1},
		{"the limit counts afresh from the release", func(ctx context.Context) {
			release := heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
			release()
			<-ctx.Done()
		}, timeout.KindIdle, time.Minute + idle},
		{"holds nest", func(ctx context.Context) {
			a, b := heartbeat.Hold(ctx), heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
			a()
			time.Sleep(time.Minute)
			b()
			<-ctx.Done()
		}, timeout.KindIdle, 2*time.Minute + idle},
		{"a release counts once", func(ctx context.Context) {
			a, b := heartbeat.Hold(ctx), heartbeat.Hold(ctx)
			a()
			a()
			a()
			time.Sleep(time.Minute)
			b()
			<-ctx.Done()
		}, timeout.KindIdle, time.Minute + idle},
		{"the total runs on", func(ctx context.Context) {
			heartbeat.Hold(ctx)
			<-ctx.Done()
		}, timeout.KindTotal, time.Hour},
		{"just in time", func(ctx context.Context) {
			time.Sleep(idle - 1)
			heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
		}, 0, time.Minute + idle - 1},
		{"too late", func(ctx context.Context) {
			time.Sleep(idle)
			heartbeat.Hold(ctx)
			<-ctx.Done()
		}, timeout.KindIdle, idle},
		{"a nested execution gives its holds back", func(ctx context.Context) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				heartbeat.Hold(ctx)
				heartbeat.Hold(ctx)
				time.Sleep(time.Minute)
				return nil
			}, timeout.Config{})
			<-ctx.Done()
		}, timeout.KindIdle, time.Minute + idle},
		{"and not those of others", func(ctx context.Context) {
			release := heartbeat.Hold(ctx)
			var inner context.Context
			var innerRelease func()
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				inner, innerRelease = ctx, heartbeat.Hold(ctx)
				return nil
			}, timeout.Config{})
			innerRelease()
			heartbeat.Hold(inner) // its execution has ended
			time.Sleep(time.Minute)
			release()
			<-ctx.Done()
		}, timeout.KindIdle, time.Minute + idle},
		{"within a nested execution it holds all", func(ctx context.Context) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				release := heartbeat.Hold(ctx)
				time.Sleep(time.Minute)
				release()
				return nil
			}, timeout.Config{Idle: 2 * idle})
		}, 0, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				start := time.Now()
				err := timeout.Run(t.Context(), func(ctx context.Context) error { tc.fn(ctx); return nil },
					timeout.Config{Idle: idle, Total: time.Hour})
				if got := time.Since(start); got != tc.at {
					t.Errorf("ended after %v, want %v", got, tc.at)
				}
				if tc.kind == 0 {
					if err != nil {
						t.Error(err)
					}
				} else if e := stopped(t, err); e.Kind != tc.kind {
					t.Errorf("%v, want %v", e.Kind, tc.kind)
				}
			})
		})
	}
}

// A hold that is never released does not outlive the execution: nothing waits.
func TestHoldOutlivesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var release func()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			release = heartbeat.Hold(ctx)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		release()
		synctest.Wait()
	})
}

// SPEC 3.5 with bursts: an absorbed beat is never dated too early, and at most a
// millisecond late.
func TestBurstIsNeverStampedTooOld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const idle = 10 * time.Millisecond
		for _, rest := range []time.Duration{0, 1, time.Microsecond, time.Millisecond - 1, time.Millisecond, 3 * time.Millisecond} {
			start := time.Now()
			var lastBeat time.Duration
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				for range 5 {
					for range 1000 {
						heartbeat.Beat(ctx)
					}
					time.Sleep(rest)
					heartbeat.Beat(ctx)
					lastBeat = time.Since(start)
				}
				<-ctx.Done()
				return nil
			}, timeout.Config{Idle: idle})
			e := stopped(t, err)
			if late := e.Elapsed - lastBeat - idle; late < 0 || late > time.Millisecond {
				t.Errorf("rest %v: fired %v after the last beat's limit", rest, late)
			}
		}
	})
}

// An idle limit shorter than a burst.
func TestBurstUnderATinyLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			for range 100 {
				for range 1000 {
					heartbeat.Beat(ctx)
				}
				time.Sleep(99 * time.Microsecond)
			}
			return ctx.Err()
		}, timeout.Config{Idle: 100 * time.Microsecond})
		if err != nil {
			t.Error(err)
		}
	})
}

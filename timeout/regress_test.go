package timeout_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// This file holds traps: each test is of a mistake that was, or nearly was, made.

// crowd makes a process of n goroutines, in which taking stacks takes its time.
func crowd(t *testing.T, n int) {
	t.Helper()
	before := runtime.NumGoroutine()
	done := make(chan struct{})
	for range n {
		go func() { <-done }()
	}
	t.Cleanup(func() { close(done); settled(t, before+5) })
}

// SPEC 3.9: a runaway loop that keeps beating has a stack too, although each beat makes
// older captures stale.
func TestStackOfARunawayLoop(t *testing.T) {
	// Other tests may have used up the ration of captures, so it gets a few tries.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		stop := make(chan struct{})
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			for {
				select {
				case <-stop:
					return nil
				default:
					heartbeat.Beat(ctx)
				}
			}
		}, timeout.Config{Total: 10 * time.Millisecond, Grace: 10 * time.Millisecond})
		close(stop)
		e := stopped(t, err)
		if e.Abandoned && strings.Contains(string(e.Stack), "TestStackOfARunawayLoop") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("abandoned %v, stack:\n%s", e.Abandoned, e.Stack)
		}
	}
	for timeout.AbandonedCount() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// SPEC 3.9, 3.10: the stack is taken before the context is cancelled, which takes a while
// among many goroutines; the grace begins after that.
func TestCaptureDoesNotEatTheGrace(t *testing.T) {
	crowd(t, 9000)
	for range 5 {
		var seen, returned time.Time
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			<-ctx.Done()
			seen = time.Now()
			time.Sleep(time.Millisecond) // it answers
			returned = time.Now()
			return nil
		}, timeout.Config{Idle: 10 * time.Millisecond, Grace: 5 * time.Second})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Abandoned {
			t.Errorf("%v, abandoned %v, though it answered within %v", e.Kind, e.Abandoned, returned.Sub(seen))
		}
	}
}

// SPEC 3.4, 6.9: an abort while the stack is taken does not overrule the limit.
func TestAbortDuringTheCapture(t *testing.T) {
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			crowd(t, 2000)
			for range 5 {
				ctx, cancel := caller(context.Background())
				idle := 20 * time.Millisecond
				var cause error
				err := timeout.Run(ctx, func(ctx context.Context) error {
					// The abort comes when the limit has been due for a while, on a timer that
					// fires at the same time as the engine's or later. It is set here, because
					// on a busy machine Run may begin milliseconds after it was called.
					time.AfterFunc(idle+2*time.Millisecond, func() { cancel(errCaller) })
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				}, timeout.Config{Idle: idle, Total: time.Minute})
				e := stopped(t, err)
				if errors.Is(cause, timeout.ErrIdle) != (e.Kind == timeout.KindIdle) {
					t.Errorf("%v, though the function saw %v", err, cause)
				}
				if e.Kind == timeout.KindAborted && e.Elapsed < idle {
					t.Errorf("aborted after %v", e.Elapsed)
				}
				if (e.Kind == timeout.KindIdle) != errors.Is(err, context.DeadlineExceeded) || timeout.ExitCode(err) == 1 {
					t.Errorf("%v, exit code %d", err, timeout.ExitCode(err))
				}
				cancel(nil)
			}
		})
	}
}

// SPEC 3.13: the panic of a nested execution arrives as what it was.
func TestNestedPanic(t *testing.T) {
	inner := func(ctx context.Context) error {
		return timeout.Run(ctx, func(context.Context) error { blowsUp(http.ErrAbortHandler); return nil })
	}
	err := timeout.Run(context.Background(), inner, timeout.WithRecover())
	var p *timeout.PanicError
	if !errors.As(err, &p) || p.Value != http.ErrAbortHandler || err.Error() != "panic: net/http: abort Handler" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(string(p.Stack), "blowsUp") {
		t.Errorf("stack:\n%s", p.Stack)
	}
	if v := recovered(func() { _ = timeout.Run(context.Background(), inner) }); v != http.ErrAbortHandler {
		t.Errorf("recovered %v", v)
	}
	err = timeout.Run(context.Background(), func(ctx context.Context) error {
		return timeout.Run(ctx, func(context.Context) error { blowsUp("boom"); return nil }, timeout.WithName("inner"))
	}, timeout.WithRecover(), timeout.WithName("outer"))
	if !errors.As(err, &p) || p.Value != "boom" || p.Tool != "inner" || !strings.Contains(string(p.Stack), "blowsUp") {
		t.Errorf("%+v", err)
	}
	// One that was recovered is not taken for another that comes later.
	err = timeout.Run(context.Background(), func(ctx context.Context) error {
		recovered(func() { _ = inner(ctx) })
		blowsUpElsewhere(uncomparable{})
		return nil
	}, timeout.WithRecover(), timeout.WithName("outer"))
	if !errors.As(err, &p) || p.Tool != "outer" || !strings.Contains(string(p.Stack), "blowsUpElsewhere") {
		t.Errorf("%+v", err)
	}
}

//go:noinline
func blowsUpElsewhere(v any) { panic(v) }

// The timeout of a tool does not wait for ever because its progress is being reported.
func TestSinkThatBeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(context.WithValue(t.Context(), callerKey{}, "value"), func(ctx context.Context) error {
			heartbeat.Relay(ctx, time.Second, func(sink context.Context, _ heartbeat.Event) {
				if sink.Value(callerKey{}) != "value" {
					t.Error("the sink's context has lost its values")
				}
				heartbeat.Beat(sink)
				_ = timeout.Run(sink, func(sink context.Context) error { heartbeat.Beat(sink); return nil })
			})
			heartbeat.Beat(ctx)
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: 10 * time.Second, Total: 24 * time.Hour})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Elapsed != 10*time.Second {
			t.Errorf("%v after %v", e.Kind, e.Elapsed)
		}
	})
}

// A relay whose context is over is gone: thousands of them cost a beat nothing.
func TestRelaysEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			calls := make(chan struct{}, 100)
			for range 100 {
				child, cancel := context.WithCancel(ctx)
				heartbeat.Relay(child, time.Second, func(context.Context, heartbeat.Event) {
					calls <- struct{}{}
				})
				cancel()
			}
			synctest.Wait()
			heartbeat.Beat(ctx)
			synctest.Wait()
			if len(calls) != 0 {
				t.Errorf("%d of them were called", len(calls))
			}
			// Stopping tells the sink that is under way.
			cancelled := make(chan struct{})
			stop := heartbeat.Relay(ctx, time.Second, func(ctx context.Context, _ heartbeat.Event) {
				<-ctx.Done()
				close(cancelled)
			})
			heartbeat.Beat(ctx)
			synctest.Wait()
			stop()
			<-cancelled
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A hold that came too late does not weaken one that comes after it.
func TestRefusedHoldTakesNothingAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(outer context.Context) error {
			var late func()
			_ = timeout.Run(outer, func(ctx context.Context) error {
				time.Sleep(time.Second)
				late = heartbeat.Hold(ctx) // too late inside, and well in time outside
				time.Sleep(time.Hour)
				late()
				return nil
			}, timeout.Config{Idle: time.Second, Grace: 2 * time.Hour})
			late()
			release := heartbeat.Hold(outer)
			time.Sleep(time.Hour)
			release()
			time.Sleep(2*time.Second - 1)
			return outer.Err()
		}, timeout.Config{Idle: 2 * time.Second})
		if err != nil {
			t.Error(err)
		}
	})
}

// A log handler that panics does not end the process, not even from a timer.
func TestPanickingLogHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil },
			timeout.Config{Idle: time.Second}, timeout.WithLogger(slog.New(panickingHandler{})))
		if !errors.Is(err, timeout.ErrIdle) {
			t.Error(err)
		}
	})
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool  { panic("handler") }
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("handler") }

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

// uncomparable errors must not make errors.Is panic.
type uncomparable struct{ _ []int }

func (uncomparable) Error() string { return "uncomparable" }

func TestUncomparableErrors(t *testing.T) {
	e := &timeout.Error{Kind: timeout.KindAborted, Err: uncomparable{}, Cause: uncomparable{}}
	for _, inner := range e.Unwrap() {
		_ = errors.Is(e, inner)
	}
	if errors.Is(e, errTool) || !errors.As(e, new(uncomparable)) {
		t.Error("errors.Is or errors.As is wrong")
	}
}

// SPEC 3.15: nothing hangs on a caller's context that lives on, whichever way the
// execution is bound to it.
func TestCallersContextKeepsNothing(t *testing.T) {
	plain, cancel := context.WithCancel(context.Background())
	defer cancel()
	near, cancelNear := context.WithTimeout(plain, time.Minute) // below the total: detached
	defer cancelNear()
	for name, ctx := range map[string]context.Context{"plain": plain, "near deadline": near} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			collected := make(chan struct{}, 1000)
			for range 1000 {
				wg.Go(func() {
					value := new([1 << 10]byte)
					runtime.AddCleanup(value, func(c chan struct{}) { c <- struct{}{} }, collected)
					_ = timeout.Run(ctx, func(context.Context) error {
						value[0] = 1
						return nil
					}, timeout.Config{Total: time.Hour, Idle: time.Hour})
				})
			}
			wg.Wait()
			deadline := time.Now().Add(20 * time.Second)
			for len(collected) < 990 && time.Now().Before(deadline) {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			if n := len(collected); n < 990 {
				t.Errorf("%d of 1000 functions were let go of", n)
			}
		})
	}
}

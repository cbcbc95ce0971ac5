package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

func TestUncomparableErrors(t *testing.T) {
	e := &timeout.Error{Kind: timeout.KindAborted, Err: uncomparable{}, Cause: uncomparable{}}
	for _, inner := range e.Unwrap() {
		_ = errors.Is(e, inner)
	}
	if errors.Is(e, errTool) || !errors.As(e, new(uncomparable)) {
		t.Error("errors.Is or errors.As is wrong")
	}
}

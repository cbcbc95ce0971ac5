package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// derived are contexts as libraries make them of the one that they are given.
var derived = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"itself": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"cancel": context.WithCancel,
	"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 1000*time.Hour)
	},
	"cancel under labels": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(pprof.WithLabels(ctx, pprof.Labels("query", "7")))
	},
}

// SPEC 3.8: after a limit the context's Err, and that of all that are made from it, is
// what context.WithTimeout has; after an abort it is the caller's.
func TestErrTellsATimeout(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config timeout.Config
		caller func(context.Context) (context.Context, context.CancelFunc)
		err    error
		cause  error
	}{
		{"total", timeout.Config{Total: time.Second}, nil, context.DeadlineExceeded, timeout.ErrTotal},
		{"idle", timeout.Config{Idle: time.Second, Total: time.Hour}, nil, context.DeadlineExceeded, timeout.ErrIdle},
		{"a deadline that is not shown", timeout.Config{}, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return unshown{ctx}, cancel
		}, context.DeadlineExceeded, timeout.ErrTotal},
		{"abort", timeout.Config{Total: time.Hour}, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errCaller) })
			return ctx, func() { cancel(nil) }
		}, context.Canceled, errCaller},
	} {
		for name, derive := range derived {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					caller, cancel := t.Context(), func() {}
					if tc.caller != nil {
						caller, cancel = tc.caller(caller)
					}
					defer cancel()
					start := time.Now()
					_ = timeout.Run(caller, func(ctx context.Context) error {
						child, cancel := derive(ctx)
						defer cancel()
						time.Sleep(time.Second - 1)
						synctest.Wait()
						if child.Err() != nil {
							t.Errorf("%v, a nanosecond early", child.Err())
						}
						<-child.Done()
						if child.Err() != tc.err || !errors.Is(context.Cause(child), tc.cause) || time.Since(start) != time.Second {
							t.Errorf("Err is %v, Cause %v, after %v; want %v, %v, 1s", child.Err(), context.Cause(child), time.Since(start), tc.err, tc.cause)
						}
						late, cancelLate := derive(ctx) // made when all is over
						defer cancelLate()
						if late.Err() != tc.err || context.Cause(late) != context.Cause(ctx) {
							t.Errorf("made later: Err is %v, Cause %v", late.Err(), context.Cause(late))
						}
						return nil
					}, tc.config, timeout.WithName("query"))
				})
			})
		}
	}
}

// A context made from the function's context hangs on it without a goroutine, and so
// is cancelled with it and not later.
func TestDerivedContextsNeedNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			for name, derive := range derived {
				more := 0
				for range 10 { // one that another test has left may start at any time, but not each time
					before := runtime.NumGoroutine()
					_, cancel := derive(ctx)
					defer cancel()
					if more = runtime.NumGoroutine() - before; more <= 0 {
						break
					}
				}
				if more > 0 {
					t.Errorf("%s: %d goroutines more", name, more)
				}
			}
			return nil
		})
	})
}

// SPEC 3.11: Err of the function's context shows the caller's end at once, on
// whichever goroutine, and counts if it came before the return.
func TestAbortIsSeenAtOnce(t *testing.T) {
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := caller(t.Context())
				err := timeout.Run(ctx, func(ctx context.Context) error {
					cancel(errCaller)
					if ctx.Err() != context.Canceled || context.Cause(ctx) != errCaller {
						t.Errorf("Err is %v, Cause %v", ctx.Err(), context.Cause(ctx))
					}
					return nil
				})
				if e := stopped(t, err); e.Kind != timeout.ErrAborted || e.Cause != errCaller {
					t.Errorf("%v, cause %v", err, e.Cause)
				}

				ctx, cancel = caller(t.Context())
				err = timeout.Run(ctx, func(context.Context) error { cancel(errCaller); return nil })
				if e := stopped(t, err); e.Kind != timeout.ErrAborted || e.Cause != errCaller {
					t.Errorf("without looking: %v, cause %v", err, e.Cause)
				}
			})
		})
	}
}

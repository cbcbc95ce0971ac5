package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The first table of docs/porting.md: how the function's context ends, and with it what is
// derived from it. SPEC 3.8, 3.11, 3.12, 3.14.
func TestPortingWhatTheFunctionSees(t *testing.T) {
	errCaller := errors.New("changed my mind")
	for _, tt := range []struct {
		name     string
		config   timeout.Config
		deadline time.Duration // the caller's
		aborted  bool
		err      error
		cause    error // that errors.Is finds
		shown    time.Duration
	}{
		{name: "total", config: timeout.Config{Total: time.Minute}, err: context.DeadlineExceeded, cause: timeout.ErrTotal, shown: time.Minute},
		{name: "the caller's deadline", deadline: time.Minute, err: context.DeadlineExceeded, cause: timeout.ErrTotal, shown: time.Minute},
		{name: "the earlier of both", config: timeout.Config{Total: time.Hour}, deadline: time.Minute, err: context.DeadlineExceeded, cause: timeout.ErrTotal, shown: time.Minute},
		{name: "idle", config: timeout.Config{Idle: time.Minute}, err: context.DeadlineExceeded, cause: timeout.ErrIdle},
		{name: "abort", aborted: true, err: context.Canceled, cause: errCaller},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, abort := context.WithCancelCause(t.Context())
				defer abort(nil)
				if tt.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				if tt.aborted {
					time.AfterFunc(time.Minute, func() { abort(errCaller) })
				}
				_ = timeout.Run(ctx, func(ctx context.Context) error {
					derived, cancel := context.WithCancel(ctx)
					defer cancel()
					deadline, has := ctx.Deadline()
					if has != (tt.shown > 0) || has && deadline.Sub(start) != tt.shown {
						t.Errorf("the deadline is %v, %v", deadline, has)
					}
					// As with the standard library's, a derived one is cancelled after the context
					// and by the same goroutine, so there is a moment between the two.
					<-ctx.Done()
					<-derived.Done()
					for name, c := range map[string]context.Context{"the context": ctx, "a derived one": derived} {
						if c.Err() != tt.err || !errors.Is(context.Cause(c), tt.cause) {
							t.Errorf("%s: %v, because of %v", name, c.Err(), context.Cause(c))
						}
					}
					if tt.aborted && context.Cause(ctx) != errCaller {
						t.Errorf("the caller's cause is wrapped: %v", context.Cause(ctx))
					}
					return ctx.Err()
				}, tt.config)
			})
		})
	}
}

// The last line of the first table. SPEC 3.15.
func TestPortingWhatTheFunctionLeaves(t *testing.T) {
	var ours context.Context
	if err := timeout.Run(t.Context(), func(ctx context.Context) error { ours = ctx; return nil }, timeout.Config{Total: time.Minute}); err != nil {
		t.Fatal(err)
	}
	theirs, cancel := context.WithTimeout(t.Context(), time.Minute)
	cancel()
	if ours.Err() != theirs.Err() || context.Cause(ours) != context.Cause(theirs) {
		t.Errorf("%v, because of %v; context.WithTimeout: %v, because of %v", ours.Err(), context.Cause(ours), theirs.Err(), context.Cause(theirs))
	}
}

// The second table: what the caller sees, and the statements about 0 and the grace. SPEC 2.1, 2.2,
// 3.7, 3.9.
func TestPortingWhatTheCallerSees(t *testing.T) {
	errOwn := errors.New("own")
	limits := timeout.Config{Total: time.Minute}
	none := timeout.Config{Total: time.Minute, Grace: -1}
	late := func(value string, err error) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { <-ctx.Done(); return value, err }
	}
	deaf := func(context.Context) (string, error) { time.Sleep(time.Hour); return "deaf", nil }
	for _, tt := range []struct {
		name    string
		fn      func(context.Context) (string, error)
		config  timeout.Config
		value   string
		is      []error
		elapsed time.Duration
	}{
		{"in time", func(context.Context) (string, error) { return "fine", errOwn }, limits, "fine", []error{errOwn}, 0},
		{"late, with an error", late("partial", errOwn), limits, "partial", []error{timeout.ErrTotal, context.DeadlineExceeded, errOwn}, time.Minute},
		{"late, without", late("partial", nil), limits, "partial", []error{timeout.ErrTotal, context.DeadlineExceeded}, time.Minute},
		{"not yet", deaf, limits, "", []error{timeout.ErrTotal, context.DeadlineExceeded}, time.Minute + timeout.DefaultGrace},
		{"not yet, without grace", deaf, none, "", []error{timeout.ErrTotal, context.DeadlineExceeded}, time.Minute},
		{"0 is no limit", deaf, timeout.Config{}, "deaf", nil, time.Hour},
		{"a negative limit is none", deaf, timeout.Config{Total: -1}, "deaf", nil, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				value, err := timeout.Do(t.Context(), tt.fn, tt.config)
				if value != tt.value || time.Since(start) != tt.elapsed || (err == nil) != (tt.is == nil) {
					t.Errorf("%q, %v after %v", value, err, time.Since(start))
				}
				for _, target := range tt.is {
					if !errors.Is(err, target) {
						t.Errorf("%v is not %v", err, target)
					}
				}
				time.Sleep(2 * time.Hour) // for what was abandoned
			})
		})
	}
}

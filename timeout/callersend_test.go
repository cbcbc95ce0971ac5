package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errBudget = errors.New("the user's budget is used up")

// A foreign is a context of another type than those of the standard library.
type foreign struct{ context.Context }

// An unshown is a context that ends by a deadline that it does not show.
type unshown struct{ context.Context }

func (unshown) Deadline() (time.Time, bool) { return time.Time{}, false }

// A shown is a context that shows a deadline, by which it does not end.
type shown struct {
	context.Context
	at time.Time
}

func (c shown) Deadline() (time.Time, bool) { return c.at, true }

// SPEC 3.12: the cause that the caller has given its deadline is in the error's tree and in the Cause of the function's
// context, beside DeadlineExceeded, whatever contexts are between.
func TestCauseOfTheCallersDeadline(t *testing.T) {
	both := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, errBudget) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, timeout.ErrTotal) || timeout.ExitCode(err) != 124 {
			t.Errorf("%+v", err)
		}
	}
	for name, between := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"nothing": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"a later deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		},
		"a foreign type":     func(ctx context.Context) (context.Context, context.CancelFunc) { return foreign{ctx}, func() {} },
		"without a Deadline": func(ctx context.Context) (context.Context, context.CancelFunc) { return unshown{ctx}, func() {} },
	} {
		for _, left := range []time.Duration{-time.Second, 3 * time.Second} {
			t.Run(name+", "+left.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeoutCause(t.Context(), left, errBudget)
					defer cancel()
					ctx, cancelBetween := between(ctx)
					defer cancelBetween()
					begun := time.Now()
					err := timeout.Run(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						both(t, context.Cause(ctx))
						return nil
					}, timeout.Config{Total: time.Hour})
					if both(t, err); time.Since(begun) != max(left, 0) {
						t.Errorf("after %v", time.Since(begun))
					}
				})
			})
		}
	}
}

// SPEC 3.12: a context that shows a deadline and does not end by it is stopped all the same, or not started.
func TestDeadlineThatEndsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		left time.Duration
		fn   func(context.Context) error
	}{
		"waits":        {time.Second, func(ctx context.Context) error { <-ctx.Done(); return nil }},
		"returns late": {time.Second, func(context.Context) error { time.Sleep(time.Second); return nil }},
		"never starts": {-time.Second, func(context.Context) error { return errors.New("started") }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				begun := time.Now()
				err := timeout.Run(shown{t.Context(), begun.Add(tt.left)}, tt.fn, timeout.Config{})
				if e := stopped(t, err); e.Kind != timeout.ErrTotal || e.Err != nil || tt.left > 0 && e.Cause != context.DeadlineExceeded || time.Since(begun) > 1200*time.Millisecond {
					t.Errorf("%v, cause %v, after %v", err, e.Cause, time.Since(begun))
				}
			})
		})
	}
}

// An odd is a context each of whose methods calls a function of the test's.
type odd struct {
	context.Context
	do func()
}

func (c *odd) Err() error                  { c.do(); return c.Context.Err() }
func (c *odd) Done() <-chan struct{}       { c.do(); return c.Context.Done() }
func (c *odd) Deadline() (time.Time, bool) { c.do(); return c.Context.Deadline() }
func (c *odd) Value(key any) any           { c.do(); return c.Context.Value(key) }

// SPEC 3.24: once the function runs, whatever the methods of the caller's context do, Run returns on time. None is called
// with a lock held: it may take one that is also held where the heartbeat is used.
func TestHostileContext(t *testing.T) {
	const total, grace = time.Second, time.Second
	ends := map[string]func(ctx context.Context, cancel func()) error{
		"returns":                func(context.Context, func()) error { return nil },
		"reaches its total":      func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil },
		"returns after an abort": func(_ context.Context, cancel func()) error { cancel(); return nil },
		"is aborted":             func(ctx context.Context, cancel func()) error { cancel(); <-ctx.Done(); return nil },
		"relays, keeps and closes": func(ctx context.Context, _ func()) error {
			defer heartbeat.Relay(ctx, 0, func(context.Context, any) {})()
			return heartbeat.Keep(ctx, time.Millisecond, func(ctx context.Context) error {
				timeout.FromContext(ctx).BeginClosing()
				<-timeout.Closing(ctx)
				timeout.Remaining(ctx)
				return nil
			})
		},
	}
	for how, attack := range map[string]func(inside context.Context, release chan struct{}){
		"block":  func(_ context.Context, release chan struct{}) { <-release },
		"panic":  func(context.Context, chan struct{}) { panic("the caller's") },
		"Goexit": func(context.Context, chan struct{}) { runtime.Goexit() },
		"call back": func(inside context.Context, _ chan struct{}) {
			heartbeat.Hold(inside)()
			heartbeat.Beat(inside)
			timeout.FromContext(inside).Snapshot()
		},
	} {
		for name, fn := range ends {
			t.Run(how+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					base, cancel := context.WithCancel(t.Context())
					defer cancel()
					release := make(chan struct{})
					var inside context.Context // set before any method is of interest
					ctx := &odd{base, func() {
						if inside != nil {
							attack(inside, release)
						}
					}}
					begun := time.Now()
					_ = timeout.Run(ctx, func(ctx context.Context) error { inside = ctx; return fn(ctx, cancel) },
						timeout.Config{Total: total, Idle: total / 2, Grace: grace, Reserve: time.Millisecond}, timeout.WithRecover())
					if took := time.Since(begun); took > total+grace {
						t.Errorf("after %v", took)
					}
					close(release)
					time.Sleep(time.Minute) // until the function has returned
				})
			})
		}
	}
}

package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errBudget = errors.New("the user's budget is used up")

type wrapped struct{ context.Context }

// timed are the shapes of a caller's context that ends by a deadline with a cause.
var timed = map[string]func(*testing.T, context.Context, time.Duration) context.Context{
	"WithTimeoutCause": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, errBudget)
		t.Cleanup(cancel)
		return ctx
	},
	"WithDeadlineCause": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithDeadlineCause(ctx, time.Now().Add(d), errBudget)
		t.Cleanup(cancel)
		return ctx
	},
	"of a grandparent": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, errBudget)
		t.Cleanup(cancel)
		ctx, cancelChild := context.WithCancel(context.WithValue(ctx, callerKey{}, 1))
		t.Cleanup(cancelChild)
		ctx, cancelGrandchild := context.WithTimeout(ctx, time.Hour)
		t.Cleanup(cancelGrandchild)
		return ctx
	},
	"with a value": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, errBudget)
		t.Cleanup(cancel)
		return context.WithValue(ctx, callerKey{}, 1)
	},
	"of another type": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, errBudget)
		t.Cleanup(cancel)
		return wrapped{ctx}
	},
	"without a Deadline": func(t *testing.T, ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, errBudget)
		t.Cleanup(cancel)
		return deadlineless{ctx}
	},
}

// SPEC 3.12: the cause that the caller has given its deadline is in the error's tree and in the Cause of
// the function's context, beside DeadlineExceeded.
func TestCauseOfTheCallersDeadline(t *testing.T) {
	both := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, errBudget) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, timeout.ErrTotal) || timeout.ExitCode(err) != 124 {
			t.Errorf("%s: %+v", what, err)
		}
	}
	outcome := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	ways := map[string]func(*testing.T, context.Context, func(context.Context) error, timeout.Config) error{
		"Run": func(_ *testing.T, ctx context.Context, fn func(context.Context) error, c timeout.Config) error {
			return timeout.Run(ctx, fn, c)
		},
		"Run with a name": func(_ *testing.T, ctx context.Context, fn func(context.Context) error, c timeout.Config) error {
			return timeout.Run(ctx, fn, c, timeout.WithName("tool"))
		},
		"Do": func(_ *testing.T, ctx context.Context, fn func(context.Context) error, c timeout.Config) error {
			_, err := timeout.Do(ctx, func(ctx context.Context) (int, error) { return 1, fn(ctx) }, c)
			return err
		},
		"observed": func(_ *testing.T, ctx context.Context, fn func(context.Context) error, c timeout.Config) error {
			return timeout.Run(ctx, fn, c, timeout.WithObserveOnly())
		},
		"nested": func(t *testing.T, ctx context.Context, fn func(context.Context) error, c timeout.Config) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				both(t, "inner", timeout.Run(ctx, fn, timeout.Config{Idle: time.Hour}))
				return nil
			}, c)
		},
	}
	for name, timed := range timed {
		for way, run := range ways {
			for _, left := range []time.Duration{-time.Second, 3 * time.Second} {
				if way == "nested" && left < 0 || name == "without a Deadline" && way == "nested" {
					continue
				}
				t.Run(name+", "+way+", "+left.String(), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						ctx, begun := timed(t, t.Context(), left), time.Now()
						var cause error
						err := run(t, ctx, func(ctx context.Context) error {
							err := outcome(ctx)
							cause = context.Cause(ctx)
							return err
						}, timeout.Config{Total: time.Hour})
						both(t, "error", err)
						if left > 0 {
							both(t, "cause of the function's context", cause)
						}
						if took := time.Since(begun); took != max(left, 0) {
							t.Errorf("after %v", took)
						}
					})
				})
			}
		}
	}
}

// A context that shows a deadline and does not end by it is stopped all the same.
func TestDeadlineThatEndsNothing(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{
		"waits":        func(ctx context.Context) error { <-ctx.Done(); return nil },
		"returns late": func(context.Context) error { time.Sleep(time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				begun := time.Now()
				err := timeout.Run(shownDeadline{t.Context(), begun.Add(time.Second)}, fn, timeout.Config{})
				if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Cause != context.DeadlineExceeded || time.Since(begun) > 1200*time.Millisecond {
					t.Errorf("%v, cause %v, after %v", err, e.Cause, time.Since(begun))
				}
			})
		})
	}
}

type shownDeadline struct {
	context.Context
	at time.Time
}

func (c shownDeadline) Deadline() (time.Time, bool) { return c.at, true }

// An odd is a context each of whose methods calls a function of the test's.
type odd struct {
	context.Context
	do func(method string)
}

func (c *odd) Err() error                  { c.do("Err"); return c.Context.Err() }
func (c *odd) Done() <-chan struct{}       { c.do("Done"); return c.Context.Done() }
func (c *odd) Deadline() (time.Time, bool) { c.do("Deadline"); return c.Context.Deadline() }
func (c *odd) Value(key any) any           { c.do("Value"); return c.Context.Value(key) }

// oddEnds are ways in which an execution ends.
var oddEnds = map[string]func(ctx context.Context, cancel func()) error{
	"returns":                func(context.Context, func()) error { return nil },
	"reaches its total":      func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil },
	"returns after an abort": func(_ context.Context, cancel func()) error { cancel(); return nil },
	"is aborted":             func(ctx context.Context, cancel func()) error { cancel(); <-ctx.Done(); return nil },
	"is stopped by hand": func(ctx context.Context, _ func()) error {
		timeout.FromContext(ctx).Abort(nil)
		return nil
	},
	"relays, keeps and closes": func(ctx context.Context, _ func()) error {
		defer heartbeat.Relay(ctx, 0, func(context.Context, heartbeat.Event) {})()
		return heartbeat.Keep(ctx, time.Millisecond, func(ctx context.Context) error {
			timeout.FromContext(ctx).BeginClosing()
			select {
			case <-timeout.Closing(ctx):
			case <-ctx.Done():
			}
			timeout.Remaining(ctx)
			time.Sleep(10 * time.Millisecond)
			return nil
		})
	},
}

// SPEC 3.24: no method of the caller's context is called with a lock held: it may take one that is also
// held where the heartbeat is used.
func TestContextThatCallsBack(t *testing.T) {
	for name, fn := range oddEnds {
		t.Run(name, func(t *testing.T) {
			base, cancel := context.WithCancel(context.Background())
			defer cancel()
			var inside context.Context // set before any method is of interest
			begun := false
			back := func(string) {
				if !begun {
					return
				}
				heartbeat.Hold(inside)()
				heartbeat.Beat(inside)
				timeout.FromContext(inside).Snapshot()
			}
			ctx := &odd{base, back}
			done := make(chan error)
			go func() {
				done <- timeout.Run(ctx, func(ctx context.Context) error {
					inside = ctx
					begun = true
					return fn(ctx, cancel)
				}, timeout.Config{Total: 20 * time.Millisecond, Idle: 15 * time.Millisecond, Reserve: time.Millisecond})
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("hangs")
			}
		})
	}
}

// SPEC 3.24: a caller's context that does not answer once the function runs keeps Run from nothing.
func TestContextThatBlocks(t *testing.T) {
	for name, fn := range oddEnds {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				base, cancel := context.WithCancel(t.Context())
				defer cancel()
				release := make(chan struct{})
				var blocks bool
				ctx := &odd{base, func(string) {
					if blocks {
						<-release
					}
				}}
				begun := time.Now()
				_ = timeout.Run(ctx, func(ctx context.Context) error { blocks = true; return fn(ctx, cancel) },
					timeout.Config{Total: time.Second, Grace: time.Second})
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("after %v", took)
				}
				close(release)
				time.Sleep(time.Minute) // until the function has returned
			})
		})
	}
}

// SPEC 3.24: nor does one whose methods panic or end their goroutine, which would end the process, or leave Run
// waiting where there are no limits.
func TestContextThatPanics(t *testing.T) {
	for how, attack := range map[string]func(){"panic": func() { panic("the caller's") }, "Goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				base, cancel := context.WithCancel(t.Context())
				defer cancel()
				var attacks atomic.Bool
				ctx := &odd{base, func(string) {
					if attacks.Load() {
						attack()
					}
				}}
				err := timeout.Run(ctx, func(ctx context.Context) error {
					time.Sleep(time.Second)
					attacks.Store(true)
					cancel()
					<-ctx.Done()
					return nil
				}, timeout.Config{})
				if !errors.Is(err, timeout.ErrAborted) {
					t.Errorf("%+v", err)
				}
			})
		})
	}
}

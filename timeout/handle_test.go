package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func heart(ctx context.Context) { heartbeat.Beat(ctx) }

// SPEC 4.8: in which state an execution is, on both sides of each boundary.
func TestState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var x *timeout.Execution
		is := func(want timeout.State, elapsed time.Duration) {
			t.Helper()
			if s := x.Snapshot(); s.State != want || s.Elapsed != elapsed {
				t.Errorf("%v after %v, want %v after %v", s.State, s.Elapsed, want, elapsed)
			}
		}
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			x = timeout.FromContext(ctx)
			is(timeout.StateRunning, 0)
			time.Sleep(8*time.Second - 1)
			is(timeout.StateRunning, 8*time.Second-1)
			time.Sleep(time.Nanosecond)
			is(timeout.StateNearIdle, 8*time.Second)
			heart(ctx)
			is(timeout.StateRunning, 8*time.Second)
			release := heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
			is(timeout.StateHeld, 68*time.Second)
			if s := x.Snapshot(); s.Hold != time.Minute || s.Held != time.Minute {
				t.Errorf("held for %v, %v in all", s.Hold, s.Held)
			}
			release()
			is(timeout.StateRunning, 68*time.Second)
			heartbeat.Hold(ctx)
			time.Sleep(time.Second)
			if s := x.Snapshot(); s.Hold != time.Second || s.Held != 61*time.Second {
				t.Errorf("held for %v, %v in all", s.Hold, s.Held)
			}
			go x.Abort(nil)
			<-ctx.Done()
			time.Sleep(time.Second)
			is(timeout.StateStopping, 70*time.Second)
			if e := stopped(t, x.Snapshot().Err); e.Kind != timeout.KindAborted {
				t.Error(e)
			}
			time.Sleep(7 * time.Second)
			is(timeout.StateAbandoned, 77*time.Second)
			return nil
		}, timeout.Config{Idle: 10 * time.Second, Total: time.Hour})
		if e := stopped(t, err); !e.Abandoned {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		is(timeout.StateEnded, 77*time.Second)
		if s := x.Snapshot(); s.Hold != 0 || s.Held < 61*time.Second {
			t.Errorf("held for %v, %v in all", s.Hold, s.Held)
		}
	})
}

// After a stall the state says so, until the next beat.
func TestStateStalled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			x := timeout.FromContext(ctx)
			is := func(want timeout.State) {
				t.Helper()
				if s := x.Snapshot(); s.State != want {
					t.Errorf("%v, want %v", s.State, want)
				}
			}
			timeout.DelayTimer(ctx, time.Minute) // it was set for the warning, at 8s
			time.Sleep(20 * time.Second)
			is(timeout.StateStalled) // which nothing has noticed yet
			timeout.DelayTimer(ctx, 0)
			synctest.Wait()
			is(timeout.StateStalled)
			if s := x.Snapshot(); s.Stalls != 1 || s.Stalled != 12*time.Second || s.SinceBeat != 0 {
				t.Errorf("%+v", s)
			}
			time.Sleep(8*time.Second - 1)
			is(timeout.StateStalled)
			time.Sleep(time.Nanosecond)
			is(timeout.StateNearIdle)
			synctest.Wait() // for the hook
			heart(ctx)
			is(timeout.StateRunning)
			return nil
		}, timeout.Config{Idle: 10 * time.Second}, timeout.WithHooks(timeout.Hooks{
			NearIdle: func(_ context.Context, s timeout.Snapshot) { j.add("%v", s.State) },
			Stalled:  func(_ context.Context, s timeout.Snapshot) { j.add("stalled for %v", s.Stalled) },
		}))
		if err != nil {
			t.Error(err)
		}
		synctest.Wait()
		j.want(t, "stalled for 12s", "near idle")
	})
}

// An execution that has ended stays as it was.
func TestSnapshotOfWhatHasEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		fn   func(context.Context) error
		want func(error) bool
	}{
		{"returned", func(context.Context) error { time.Sleep(time.Second); return nil }, func(err error) bool { return err == nil }},
		{"failed", func(context.Context) error { time.Sleep(time.Second); return errTool }, func(err error) bool { return err == errTool }},
		{"panicked", func(context.Context) error { time.Sleep(time.Second); panic("boom") }, func(err error) bool { var p *timeout.PanicError; return errors.As(err, &p) }},
		{"timed out", func(ctx context.Context) error { <-ctx.Done(); return errTool }, func(err error) bool { return errors.Is(err, timeout.ErrTotal) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var x *timeout.Execution
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					x = timeout.FromContext(ctx)
					return tc.fn(ctx)
				}, timeout.Config{Total: 2 * time.Second}, timeout.WithRecover())
				ended := x.Snapshot()
				time.Sleep(time.Hour)
				s := x.Snapshot()
				if s.State != timeout.StateEnded || s.Elapsed != ended.Elapsed || s.SinceBeat != ended.SinceBeat || !tc.want(s.Err) {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Aborting is too late when a limit has fallen due, the caller has gone or the function has
// returned, even if nothing has noticed that yet.
func TestAbortTooLate(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   time.Duration
		want timeout.Kind
	}{
		{"in time", 10*time.Second - 1, timeout.KindAborted},
		{"at the limit", 10 * time.Second, timeout.KindTotal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					timeout.DelayTimer(ctx, time.Hour)
					time.Sleep(tc.at)
					if got := timeout.FromContext(ctx).Abort(errTool); got != (tc.want == timeout.KindAborted) {
						t.Errorf("Abort returns %v", got)
					}
					<-ctx.Done()
					return nil
				}, timeout.Config{Total: 10 * time.Second})
				if e := stopped(t, err); e.Kind != tc.want || e.Elapsed != tc.at {
					t.Errorf("%v after %v", e, e.Elapsed)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errCaller := errors.New("the caller's")
		err := timeout.Run(ctx, func(ctx context.Context) error {
			x := timeout.FromContext(ctx)
			cancel(errCaller)
			if x.Abort(errTool) {
				t.Error("the caller was first")
			}
			return nil
		})
		if e := stopped(t, err); e.Cause != errCaller {
			t.Error(err)
		}
		var x *timeout.Execution
		if err := timeout.Run(t.Context(), func(ctx context.Context) error { x = timeout.FromContext(ctx); return nil }); err != nil || x.Abort(nil) {
			t.Errorf("%v, aborted after the end", err)
		}
	})
}

// A stack shows where the function is, and is nil once it is nowhere.
func TestStackOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var x *timeout.Execution
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			x = timeout.FromContext(ctx)
			asked := make(chan []byte)
			go func() { asked <- x.Stack() }()
			if stack := <-asked; !bytes.Contains(stack, []byte("TestStackOnRequest")) {
				t.Errorf("stack: %s", stack)
			}
			return nil
		}, timeout.Config{})
		if stack := x.Stack(); err != nil || stack != nil {
			t.Errorf("%v, and after the end: %s", err, stack)
		}
	})
}

// Nor does an old sample, where none can be had, show what has ended.
func TestStackOfWhatHasEnded(t *testing.T) {
	var x *timeout.Execution
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		x = timeout.FromContext(ctx)
		for range 300 { // until the ration is used up
			x.Stack()
		}
		return nil
	}, timeout.Config{})
	if stack := x.Stack(); err != nil || stack != nil {
		t.Errorf("%v, %s", err, stack)
	}
	err = timeout.Run(t.Context(), func(ctx context.Context) error {
		for deadline := time.Now().Add(time.Minute); timeout.FromContext(ctx).Stack() == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.New("no stack can be had any more")
			}
		}
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
}

// No execution is safe to ask.
func TestNoExecution(t *testing.T) {
	x := timeout.FromContext(context.Background())
	if x != nil || x.ID() != 0 || x.Parent() != nil || x.Snapshot().State != 0 || x.Stack() != nil || x.Abort(nil) || x.String() != "no execution" {
		t.Errorf("%v", x)
	}
}

// Neither printing nor comparing reads what is in use.
func TestExecutionPrints(t *testing.T) {
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		x := timeout.FromContext(ctx)
		for _, verb := range []string{"%v", "%+v", "%s"} {
			if got := fmt.Sprintf(verb, x); got != "timeout.Run(scan)" {
				t.Errorf("%s: %s", verb, got)
			}
		}
		if x != timeout.FromContext(ctx) {
			t.Error("another one each time")
		}
		return nil
	}, timeout.WithName("scan"))
	if err != nil {
		t.Error(err)
	}
}

func TestStateString(t *testing.T) {
	var all []string
	for s := timeout.StateRunning; s <= timeout.StateEnded; s++ {
		all = append(all, s.String())
	}
	if got := strings.Join(all, ", "); got != "running, near idle, held, stalled, stopping, abandoned, ended" {
		t.Error(got)
	}
	if timeout.State(0).String() != "State(0)" || timeout.State(8).String() != "State(8)" || timeout.State(-1).String() != "State(-1)" {
		t.Error(timeout.State(0), timeout.State(8), timeout.State(-1))
	}
}

// A page that is looked at while tests run lists what runs in their bubbles, too.
func TestSnapshotFromOutsideABubble(t *testing.T) {
	shown, looked := make(chan *timeout.Execution), make(chan timeout.Snapshot)
	go func() {
		for x := range shown {
			looked <- x.Snapshot()
		}
	}()
	defer close(shown)
	bubble(t, func(t *testing.T) {
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			shown <- timeout.FromContext(ctx)
			if s := <-looked; s.State != timeout.StateStopping || !errors.Is(s.Err, timeout.ErrTotal) {
				t.Errorf("%v, %v", s.State, s.Err)
			}
			return nil
		}, timeout.Config{Total: time.Second})
	})
}

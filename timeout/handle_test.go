package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// After a stall the state says so, until the next beat.
func TestStateStalled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
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
			heartbeat.Beat(ctx)
			is(timeout.StateRunning)
			return nil
		}, timeout.Config{Idle: 10 * time.Second}, timeout.WithHooks(timeout.Hooks{
			NearIdle: func(_ context.Context, s timeout.Snapshot) { told = append(told, s.State.String()) },
			Stalled: func(_ context.Context, s timeout.Snapshot) {
				told = append(told, fmt.Sprintf("stalled for %v", s.Stalled))
			},
		}))
		if err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := strings.Join(told, ", "); got != "stalled for 12s, near idle" {
			t.Errorf("the hooks were told %s", got)
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

// SPEC 3.9, 18.3: the heartbeats of an abandoned function count in its snapshots, up to its return.
func TestSilenceOfTheAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, returned := make(chan *timeout.Execution, 1), make(chan time.Duration, 1)
		hooks := timeout.Hooks{Returned: func(_ context.Context, s timeout.Snapshot) { returned <- s.SinceBeat }}
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			started <- timeout.FromContext(ctx)
			time.Sleep(time.Minute)
			heartbeat.Beat(ctx)
			time.Sleep(2 * time.Second)
			return nil
		}, timeout.Config{Total: time.Second, Grace: time.Second}, timeout.WithHooks(hooks))
		x := <-started
		var got []time.Duration
		for _, sleep := range []time.Duration{57 * time.Second, 2 * time.Second, time.Hour} { // to the 59th and the 61st second
			time.Sleep(sleep)
			got = append(got, x.Snapshot().SinceBeat)
		}
		if got, want := append(got, <-returned), []time.Duration{59 * time.Second, time.Second, 2 * time.Second, 2 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
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

package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

//go:noinline
func waitsForAnother(friend <-chan struct{}) { <-friend }

//go:noinline
func waitsForAFriend(friend <-chan struct{}) { <-friend }

// SPEC 3.9: where a function was that answers, when the idle limit fired.
func TestStackOfAnAnsweringFunction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			var wg sync.WaitGroup
			wg.Go(func() { waitsForAFriend(ctx.Done()) }) // the hang is not in the function itself
			wg.Wait()
			return nil
		}, timeout.Config{Idle: time.Second})
		e := stopped(t, err)
		if e.Abandoned || !strings.Contains(string(e.Stack), "waitsForAFriend") || !strings.Contains(string(e.Stack), "WaitGroup).Wait") {
			t.Errorf("abandoned %v, stack:\n%s", e.Abandoned, e.Stack)
		}
	})
}

// Many executions in different functions: no error has another's stack. When they fire
// faster than stacks may be taken, some have none.
func TestStackIsTheRightOne(t *testing.T) {
	places := []func(<-chan struct{}){waitsForAFriend, waitsForAnother}
	names := []string{"waitsForAFriend(", "waitsForAnother("}
	var have atomic.Int64
	// The tests before this one may have used up the ration of samples for up to 25 s.
	for start := time.Now(); have.Load() == 0; {
		if time.Since(start) > time.Minute {
			t.Fatal("no error has a stack")
		}
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				err := timeout.Run(context.Background(), func(ctx context.Context) error {
					places[i%2](ctx.Done())
					return nil
				}, timeout.Config{Idle: 300 * time.Millisecond}, timeout.WithName("place"))
				var e *timeout.Error
				if !errors.As(err, &e) || e.Kind != timeout.ErrIdle {
					t.Errorf("%v", err)
					return
				}
				for j, name := range names {
					switch got := strings.Contains(string(e.Stack), name); {
					case got && j == i%2:
						have.Add(1)
					case got:
						t.Errorf("execution in %s: stack has %s:\n%s", names[i%2], name, e.Stack)
					}
				}
			})
		}
		wg.Wait()
	}
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

// SPEC 3.4, 6.9: an abort while the stack is taken, which takes a while among many goroutines, does not overrule the limit.
func TestAbortDuringTheCapture(t *testing.T) {
	before, done := runtime.NumGoroutine(), make(chan struct{})
	for range 2000 {
		go func() { <-done }()
	}
	t.Cleanup(func() { close(done); settled(t, before+5) })
	const idle = 20 * time.Millisecond
	ctx, cancel := context.WithCancelCause(context.Background())
	var cause error
	err := timeout.Run(ctx, func(ctx context.Context) error {
		// Set here, because on a busy machine Run may begin milliseconds after it was called.
		time.AfterFunc(idle+2*time.Millisecond, func() { cancel(errCaller) })
		<-ctx.Done()
		cause = context.Cause(ctx)
		return nil
	}, timeout.Config{Idle: idle, Total: time.Minute})
	e := stopped(t, err)
	if errors.Is(cause, timeout.ErrIdle) != (e.Kind == timeout.ErrIdle) || e.Elapsed < idle || timeout.ExitCode(err) == 1 {
		t.Errorf("%v after %v, though the function saw %v", err, e.Elapsed, cause)
	}
}

// SPEC 3.9: an error that is refused a capture of its own has the last one, unless the
// function may have been elsewhere since, or nobody can tell.
func TestStackOfAnOlderCapture(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the last capture is not kept for its own sake
	bubble(t, func(t *testing.T) {
		mock := clock.NewMock()
		stacks := make(map[string]string)
		var mu sync.Mutex
		var running sync.WaitGroup
		stuck := func(name string, beatAt time.Duration, opts ...timeout.Option) {
			running.Go(func() {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					time.Sleep(beatAt)
					heartbeat.Beat(ctx)
					waitsForAFriend(ctx.Done())
					return nil
				}, opts...)
				e := stopped(t, err)
				mu.Lock()
				defer mu.Unlock()
				stacks[name] = string(e.Stack)
				if e.Kind != timeout.ErrIdle {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		idle := func(d time.Duration) timeout.Config { return timeout.Config{Idle: d} }
		stuck("the first", 0, idle(2*time.Second))
		stuck("stuck since before", time.Second, idle(9*time.Second))
		stuck("beat at the same time", 2*time.Second, idle(8*time.Second))
		stuck("beat after", 2*time.Second+1, idle(8*time.Second-1))
		stuck("on another clock", time.Second, idle(9*time.Second), timeout.WithClock(mock))

		time.Sleep(5 * time.Second)
		leave := make(chan struct{})
		for range 2500 { // too many to take another
			go func() { <-leave }()
		}
		time.Sleep(6 * time.Second)
		mock.Add(time.Minute)
		running.Wait()
		close(leave)
		for name, want := range map[string]bool{
			"the first": true, "stuck since before": true, "beat at the same time": true,
			"beat after": false, "on another clock": false,
		} {
			if got := strings.Contains(stacks[name], "waitsForAFriend") || name == "beat at the same time" && stacks[name] != ""; got != want {
				t.Errorf("%s: has a stack %v, want %v:\n%s", name, got, want, stacks[name])
			}
		}
	})
}

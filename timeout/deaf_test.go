package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/timeout"
)

//go:noinline
func waitsForAFriend(friend <-chan struct{}) { <-friend }

// SPEC 3.9: the error of an abandonment shows where the function hangs.
func TestStackOfADeafFunction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		friend := make(chan struct{})
		got, err := timeout.Do(t.Context(), func(context.Context) (string, error) {
			waitsForAFriend(friend)
			return "late", errTool
		}, timeout.Config{Idle: time.Second, Grace: time.Second})
		if e := stopped(t, err); !e.Abandoned || got != "" || !strings.Contains(string(e.Stack), "waitsForAFriend") {
			t.Errorf("%q, %+v", got, err)
		}
		close(friend)
	})
}

// SPEC 2.2: without a grace Run waits for nothing, and so it returns on a clock that stands
// still.
func TestNoGraceOnAMockClock(t *testing.T) {
	caller, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	err := timeout.Run(caller, func(context.Context) error {
		cancel()
		<-release
		return nil
	}, timeout.Config{Grace: -1}, timeout.WithClock(clock.NewMock()))
	if e := stopped(t, err); !e.Abandoned || e.Limits.Grace >= 0 {
		t.Errorf("abandoned %v, grace %v", e.Abandoned, e.Limits.Grace)
	}
	close(release)
	for timeout.AbandonedCount() > 0 {
		time.Sleep(time.Millisecond)
	}
}

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
	places := []func(context.Context){
		func(ctx context.Context) { placeA(ctx) }, func(ctx context.Context) { placeB(ctx) }, func(ctx context.Context) { placeC(ctx) },
	}
	names := []string{"placeA(", "placeB(", "placeC("}
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
					places[i%3](ctx)
					return nil
				}, timeout.Config{Idle: 300 * time.Millisecond}, timeout.WithName("place"))
				var e *timeout.Error
				if !errors.As(err, &e) || e.Kind != timeout.KindIdle {
					t.Errorf("%v", err)
					return
				}
				for j, name := range names {
					switch got := strings.Contains(string(e.Stack), name); {
					case got && j == i%3:
						have.Add(1)
					case got:
						t.Errorf("execution in %s: stack has %s:\n%s", names[i%3], name, e.Stack)
					}
				}
			})
		}
		wg.Wait()
	}
}

//go:noinline
func placeA(ctx context.Context) { <-ctx.Done() }

//go:noinline
func placeB(ctx context.Context) { <-ctx.Done() }

//go:noinline
func placeC(ctx context.Context) { <-ctx.Done() }

// SPEC 3.9: a panic after the abandonment is reported and ends nothing; and so are
// Goexit and a plain return.
func TestLateReturn(t *testing.T) {
	for _, tc := range []struct {
		name string
		fn   func() error
		err  error
	}{
		{"panic", func() error { panic(errTool) }, errTool},
		{"error", func() error { return errTool }, errTool},
		{"goexit", func() error { runtime.Goexit(); return nil }, timeout.ErrGoexit},
		{"nil", func() error { return nil }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var r recorder
				err := timeout.Run(t.Context(), func(context.Context) error {
					time.Sleep(time.Minute)
					return tc.fn()
				}, timeout.Config{Total: time.Second}, timeout.WithHooks(r.hooks()))
				if e := stopped(t, err); !e.Abandoned {
					t.Fatal("not abandoned")
				}
				r.want(t, "started", "exceeded", "abandoned", "finished")
				time.Sleep(time.Hour)
				r.want(t, "started", "exceeded", "abandoned", "finished", "returned")
				s := r.snapshot("returned")
				var p *timeout.PanicError
				if !errors.Is(s.Err, tc.err) || s.Elapsed != time.Minute || errors.As(s.Err, &p) != (tc.name == "panic") {
					t.Errorf("%v after %v, want %v", s.Err, s.Elapsed, tc.err)
				}
			})
		})
	}
}

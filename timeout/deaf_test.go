package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

//go:noinline
func waitsForAFriend(friend <-chan struct{}) { <-friend }

// SPEC 3.9: Run returns at limit + grace, and says what it left behind.
func TestDeafFunction(t *testing.T) {
	for _, tc := range []struct {
		name      string
		config    timeout.Config
		back      time.Duration // when the function returns, after the start
		abandoned bool
	}{
		{"back a nanosecond before the grace is over", timeout.Config{Idle: time.Second, Grace: 3 * time.Second}, 4*time.Second - 1, false},
		{"a nanosecond after", timeout.Config{Idle: time.Second, Grace: 3 * time.Second}, 4*time.Second + 1, true},
		{"the default grace, before", timeout.Config{Total: time.Second}, 8*time.Second - 1, false},
		{"the default grace, after", timeout.Config{Total: time.Second}, 8*time.Second + 1, true},
		{"a grace of a nanosecond", timeout.Config{Total: time.Second, Grace: 1}, 2 * time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				before := timeout.Abandoned()
				start := time.Now()
				friend := make(chan struct{})
				time.AfterFunc(tc.back, func() { close(friend) })
				var inner context.Context
				got, err := timeout.Do(t.Context(), func(ctx context.Context) (string, error) {
					inner = ctx
					waitsForAFriend(friend)
					return "late", errTool
				}, tc.config)
				e := stopped(t, err)
				want := min(tc.back, e.Limit+max(tc.config.Grace, 0))
				if tc.config.Grace == 0 {
					want = min(tc.back, e.Limit+7*time.Second)
				}
				if time.Since(start) != want || e.Abandoned != tc.abandoned {
					t.Errorf("returned after %v, abandoned %v, want %v, %v", time.Since(start), e.Abandoned, want, tc.abandoned)
				}
				if e.Elapsed != e.Limit {
					t.Errorf("elapsed %v: the grace is not part of it", e.Elapsed)
				}
				if !tc.abandoned {
					if got != "late" || e.Err != errTool || timeout.Abandoned() != before {
						t.Errorf("%q, %v, %d abandoned", got, e.Err, timeout.Abandoned()-before)
					}
					return
				}
				if got != "" || e.Err != nil || timeout.Abandoned() != before+1 {
					t.Errorf("%q, %v, %d abandoned, want nothing, nothing, 1", got, e.Err, timeout.Abandoned()-before)
				}
				if !strings.Contains(string(e.Stack), "waitsForAFriend") {
					t.Errorf("the stack does not show where it hangs:\n%s", e.Stack)
				}
				heartbeat.Beat(inner) // SPEC 3.15
				time.Sleep(time.Hour)
				if timeout.Abandoned() != before {
					t.Errorf("still %d abandoned after the function has returned", timeout.Abandoned()-before)
				}
			})
		})
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

// A thousand executions, deep in different functions: each error has its own stack.
func TestStackIsTheRightOne(t *testing.T) {
	places := []func(context.Context){
		func(ctx context.Context) { placeA(ctx) }, func(ctx context.Context) { placeB(ctx) }, func(ctx context.Context) { placeC(ctx) },
	}
	names := []string{"placeA(", "placeB(", "placeC("}
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			err := timeout.Run(context.Background(), func(ctx context.Context) error {
				places[i%3](ctx)
				return nil
			}, timeout.Config{Idle: 100 * time.Millisecond}, timeout.WithName("place"))
			var e *timeout.Error
			if !errors.As(err, &e) {
				t.Errorf("%v", err)
				return
			}
			for j, name := range names {
				if got := strings.Contains(string(e.Stack), name); got != (j == i%3) {
					t.Errorf("execution in %s: stack has %s: %v\n%s", names[i%3], name, got, e.Stack)
				}
			}
		})
	}
	wg.Wait()
}

//go:noinline
func placeA(ctx context.Context) { <-ctx.Done() }

//go:noinline
func placeB(ctx context.Context) { <-ctx.Done() }

//go:noinline
func placeC(ctx context.Context) { <-ctx.Done() }

// SPEC 3.9: a mass timeout is not a stall: the captures are shared.
func TestMassTimeout(t *testing.T) {
	const n = 5000
	start := time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := timeout.Run(context.Background(), func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}, timeout.Config{Idle: 500 * time.Millisecond})
			if !errors.Is(err, timeout.ErrIdle) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// SPEC 3.9: a panic after the abandonment is reported and ends nothing.
func TestLatePanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var returned timeout.Snapshot
		calls := 0
		err := timeout.Run(t.Context(), func(context.Context) error {
			time.Sleep(time.Minute)
			panic("too late")
		}, timeout.Config{Total: time.Second}, timeout.WithName("x"), timeout.WithHooks(timeout.Hooks{
			Returned: func(_ context.Context, s timeout.Snapshot) { returned = s; calls++ },
		}))
		if e := stopped(t, err); !e.Abandoned || calls != 0 {
			t.Fatalf("abandoned %v, hook called %d times", e.Abandoned, calls)
		}
		time.Sleep(time.Hour)
		var p *timeout.PanicError
		if calls != 1 || !errors.As(returned.Err, &p) || p.Value != "too late" || returned.Elapsed != time.Minute {
			t.Errorf("hook called %d times, with %v after %v", calls, returned.Err, returned.Elapsed)
		}
	})
}

// SPEC 3.9: the same for Goexit, and for a plain late return.
func TestLateReturn(t *testing.T) {
	for name, f := range map[string]func() error{
		"error":  func() error { return errTool },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got error
				err := timeout.Run(t.Context(), func(context.Context) error {
					time.Sleep(time.Minute)
					return f()
				}, timeout.Config{Total: time.Second}, timeout.WithHooks(timeout.Hooks{
					Returned: func(_ context.Context, s timeout.Snapshot) { got = s.Err },
				}))
				stopped(t, err)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got != errTool && got != timeout.ErrGoexit {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

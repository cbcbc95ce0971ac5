package timeout_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
				if !errors.As(err, &e) || e.Kind != timeout.KindIdle {
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

package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Bounded admission: at most two executions at once, the others wait.
//
// The slot is taken before Run, under the caller's context: waiting for it is not the tool's
// silence, and no part of its total. It is released when the function has returned, which
// for one that was abandoned is later than Run.
func ExampleRun_semaphore() {
	slots := semaphore.NewWeighted(2)
	admit := func(ctx context.Context, tool func(context.Context) error) error {
		if err := slots.Acquire(ctx, 1); err != nil {
			return err // the caller has given up
		}
		release := sync.OnceFunc(func() { slots.Release(1) })
		err := timeout.Run(ctx, func(ctx context.Context) error {
			defer release()
			return tool(ctx)
		}, timeout.FastTools())
		// A function that was never called has not released it.
		var stopped *timeout.Error
		if !errors.As(err, &stopped) || !stopped.Abandoned {
			release()
		}
		return err
	}

	var running, most atomic.Int32
	var calls sync.WaitGroup
	for range 6 {
		calls.Go(func() {
			err := admit(context.Background(), func(context.Context) error {
				defer running.Add(-1)
				for n := running.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				time.Sleep(20 * time.Millisecond) // work
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	calls.Wait()
	fmt.Println("at most", most.Load(), "at once")
	// Output: at most 2 at once
}

package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 4.7: whether an execution was stopped, or has only returned the error of another one, can
// be told in Finished, in Returned and of a handle that was kept.
func TestReturned(t *testing.T) {
	limits := timeout.Config{Idle: time.Second, Grace: time.Second}
	stuck := func(ctx context.Context) error { <-ctx.Done(); return nil }
	panics := func(context.Context) error { panic("boom") }
	leaves := func(context.Context) error { runtime.Goexit(); return nil }
	within := func(fn func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error { return timeout.Run(ctx, fn, limits, timeout.WithRecover()) }
	}
	for _, tc := range []struct {
		name string
		fn   func(context.Context) error
		want bool
	}{
		{"success", func(context.Context) error { return nil }, true},
		{"an error", func(context.Context) error { return errTool }, true},
		{"another's timeout", within(stuck), true},
		{"another's timeout, wrapped", func(ctx context.Context) error { return fmt.Errorf("step: %w", within(stuck)(ctx)) }, true},
		{"another's panic", within(panics), true},
		{"another's Goexit", within(leaves), true},
		{"a limit", stuck, false},
		{"an abort", func(ctx context.Context) error {
			timeout.FromContext(ctx).Abort(errTool)
			return stuck(ctx)
		}, false},
		{"a panic", panics, false},
		{"Goexit", leaves, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var finished timeout.Snapshot
				var kept *timeout.Execution
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					kept = timeout.FromContext(ctx)
					return tc.fn(ctx)
				}, timeout.Config{Idle: time.Minute, Grace: time.Second}, timeout.WithRecover(), timeout.WithHooks(timeout.Hooks{
					Finished: func(_ context.Context, s timeout.Snapshot) { finished = s },
				}))
				if finished.Returned != tc.want {
					t.Errorf("Returned is %v with %v", finished.Returned, finished.Err)
				}
				if got := kept.Snapshot(); got.Returned != tc.want {
					t.Errorf("Returned of the handle is %v with %v", got.Returned, got.Err)
				}
			})
		})
	}
}

// SPEC 4.7: of an abandoned function, Finished has the stop, and Returned what it returned.
func TestReturnedAfterAbandonment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := map[string]bool{}
		_ = timeout.Run(t.Context(), func(context.Context) error { time.Sleep(time.Hour); return errTool },
			timeout.Config{Idle: time.Second, Grace: time.Second}, timeout.WithHooks(timeout.Hooks{
				Finished: func(_ context.Context, s timeout.Snapshot) { got["finished"] = s.Returned },
				Returned: func(_ context.Context, s timeout.Snapshot) { got["returned"] = s.Returned && errors.Is(s.Err, errTool) },
			}))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(map[string]bool{"finished": false, "returned": true}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A trace names what it sees by what it is.
func ExampleWithOperation() {
	defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
		fmt.Println(s.Operation, s.Tool)
	}})()
	nothing := func(context.Context) error { return nil }
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		return timeout.Run(ctx, nothing, timeout.WithName("step")) // not inherited
	}, timeout.WithName("git"), timeout.WithOperation(timeout.OperationCommand))
	// Output:
	// tool step
	// command git
}

func ExampleOperation_String() {
	fmt.Println(timeout.OperationTool, timeout.OperationCommand, timeout.OperationHandler, timeout.OperationRequest, timeout.Operation(9))
	// Output:
	// tool command handler request Operation(9)
}

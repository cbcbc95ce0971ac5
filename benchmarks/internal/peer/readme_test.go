package peer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	fsgo "github.com/failsafe-go/failsafe-go"
	ftimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The README's table of what others do, for functions that return a value long after a
// limit of one second.
func TestReadmeComparison(t *testing.T) {
	errOwn := errors.New("own")
	deaf := func(context.Context) (string, error) { time.Sleep(time.Minute); return "late", nil }
	late := func(ctx context.Context) (string, error) { <-ctx.Done(); return "late", errOwn }
	run := map[string]func(func(context.Context) (string, error)) (string, error){
		"context.WithTimeout": func(fn func(context.Context) (string, error)) (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return fn(ctx)
		},
		"failsafe-go": func(fn func(context.Context) (string, error)) (string, error) {
			return fsgo.With[string](ftimeout.New[string](time.Second)).GetWithExecution(
				func(e fsgo.Execution[string]) (string, error) { return fn(e.Context()) })
		},
		"failsafe-go async": func(fn func(context.Context) (string, error)) (string, error) {
			return fsgo.With[string](ftimeout.New[string](time.Second)).GetAsyncWithExecution(
				func(e fsgo.Execution[string]) (string, error) { return fn(e.Context()) }).Get()
		},
		"here": func(fn func(context.Context) (string, error)) (string, error) {
			return timeout.Do(context.Background(), fn, timeout.Config{Total: time.Second, Grace: time.Second})
		},
	}
	for _, tt := range []struct {
		who           string
		waits         bool   // for a function that ignores its context
		value         string // of one that returns late
		own, deadline bool   // what errors.Is finds of it
	}{
		{who: "context.WithTimeout", waits: true, value: "late", own: true},
		{who: "failsafe-go", waits: true},
		{who: "failsafe-go async", waits: true},
		{who: "here", value: "late", own: true, deadline: true},
	} {
		t.Run(tt.who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, _ = run[tt.who](deaf)
				if waited := time.Since(start) >= time.Minute; waited != tt.waits {
					t.Errorf("returned after %v", time.Since(start))
				}
				value, err := run[tt.who](late)
				if value != tt.value || errors.Is(err, errOwn) != tt.own || errors.Is(err, context.DeadlineExceeded) != tt.deadline {
					t.Errorf("a late function: %q, %v", value, err)
				}
				time.Sleep(time.Minute) // for what was abandoned
			})
		})
	}
}

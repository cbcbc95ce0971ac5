package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

type callerKey struct{}

var errCaller = errors.New("the caller has had enough")

// callers are the shapes of a caller's context: they take different ways through the
// engine, and must not differ in what is seen.
var callers = map[string]func(context.Context) (context.Context, context.CancelCauseFunc){
	"plain":    context.WithCancelCause,
	"deadline": withFarDeadline,
	"outer execution": func(ctx context.Context) (context.Context, context.CancelCauseFunc) {
		got := make(chan context.Context)
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			_ = timeout.Run(ctx, func(ctx context.Context) error { got <- ctx; <-ctx.Done(); return nil }, timeout.Config{Total: 1000 * time.Hour})
		}()
		return <-got, cancel
	},
}

func withFarDeadline(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	return ctx, func(err error) { cancel(err); stop() }
}

// lateDeadline is a context whose deadline has passed while its timer is late.
type lateDeadline struct{ context.Context }

func (lateDeadline) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestNeverStartedByALateTimer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(lateDeadline{t.Context()}, func(context.Context) error { t.Error("started"); return nil })
		if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Error() != "Tool exceeded wall-clock limit of 0s." {
			t.Errorf("%v", err)
		}
	})
}

// deadlineless is a context that expires without having said so.
type deadlineless struct{ context.Context }

func (deadlineless) Deadline() (time.Time, bool) { return time.Time{}, false }

// Real threads, the same instant: whatever wins, everybody says the same.
func TestOneOutcomeUnderRaces(t *testing.T) {
	for range 300 {
		ctx, cancel := context.WithCancel(context.Background())
		limit := 50 * time.Microsecond
		time.AfterFunc(limit, cancel)
		var finished error
		calls := 0
		hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished = s.Err; calls++ }}
		var inner context.Context
		err := timeout.Run(ctx, func(ctx context.Context) error {
			inner = ctx
			select {
			case <-ctx.Done():
			case <-time.After(limit):
			}
			return errTool
		}, timeout.Config{Total: limit, Idle: limit}, timeout.WithHooks(hooks))
		if inner == nil && errors.Is(err, timeout.ErrAborted) {
			continue // cancelled before Run had looked
		}
		if calls != 1 || finished != err {
			t.Fatalf("hook called %d times, with %v; Run gave %v", calls, finished, err)
		}
		var e *timeout.Error
		cause := context.Cause(inner)
		switch {
		case err == errTool:
			if errors.Is(cause, context.DeadlineExceeded) || cause == context.Canceled {
				t.Fatalf("finished, with cause %v", cause)
			}
		case errors.As(err, &e) && e.Kind == timeout.KindAborted:
			if cause != context.Canceled {
				t.Fatalf("aborted, with cause %v", cause)
			}
		case errors.As(err, &e):
			if !errors.Is(cause, context.DeadlineExceeded) || cause.Error() != e.Error() {
				t.Fatalf("%v, with cause %v", err, cause)
			}
		default:
			t.Fatal(err)
		}
	}
}

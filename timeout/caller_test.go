package timeout_test

import (
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

type callerKey struct{}

var errCaller = errors.New("the caller has had enough")

// callers are the shapes of a caller's context: they take different ways through the
// engine, and must not differ in what is seen.
var callers = map[string]func(context.Context) (context.Context, context.CancelCauseFunc){
	"plain": context.WithCancelCause,
	"deadline": func(ctx context.Context) (context.Context, context.CancelCauseFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		return ctx, func(err error) { cancel(err); stop() }
	},
	"outer execution": func(ctx context.Context) (context.Context, context.CancelCauseFunc) {
		got := make(chan context.Context)
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			_ = timeout.Run(ctx, func(ctx context.Context) error { got <- ctx; <-ctx.Done(); return nil }, timeout.Config{Total: 1000 * time.Hour})
		}()
		return <-got, cancel
	},
}

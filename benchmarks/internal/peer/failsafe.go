package peer

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	ftimeout "github.com/failsafe-go/failsafe-go/timeout"
)

// A Failsafe is a timeout policy of failsafe-go. It has no idle limit, and its total belongs to the policy, so its
// methods ignore their Limits.
type Failsafe struct {
	total    time.Duration
	executor failsafe.Executor[any]
}

// NewFailsafe makes the policy and its executor, once per program.
func NewFailsafe(total time.Duration) *Failsafe {
	return &Failsafe{total, failsafe.With[any](ftimeout.New[any](total))}
}

// Sync runs fn on the caller's goroutine. It does not meet the contract: a function that ignores its context blocks the
// caller for ever.
func (f *Failsafe) Sync(ctx context.Context, _ Limits, fn Func) error {
	return f.executor.WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error {
		return fn(e.Context(), nil)
	})
}

// Async runs fn on a goroutine of failsafe-go. Without the timer, the second select and call, it would wait for a
// function that ignores its context, and a panic would end the process. Unlike the contract, the context has no
// deadline, and its cause does not identify the limit.
func (f *Failsafe) Async(ctx context.Context, _ Limits, fn Func) error {
	result := f.executor.WithContext(ctx).RunAsyncWithExecution(func(e failsafe.Execution[any]) error {
		return call(e.Context(), fn, nil)
	})
	last := time.NewTimer(f.total + Grace)
	defer last.Stop()
	select {
	case <-result.Done():
	case <-last.C:
		return ErrTotal
	case <-ctx.Done():
		last.Reset(Grace)
		select {
		case <-result.Done():
		case <-last.C:
			return context.Cause(ctx)
		}
	}
	err := result.Error()
	if errors.Is(err, ftimeout.ErrExceeded) {
		return ErrTotal
	}
	return finish(err)
}

// Package peer has what tooldeadline is compared with, all of it behind one type, Run.
//
// The contract of a Run: the function is on a goroutine of its own; its context is
// cancelled at the limit, with a cause that tells which one; the caller has the
// result at once when the function returns, and an error at the limit plus Grace at
// the latest when it does not; a panic of the function becomes one of the caller.
// Where a design cannot do all of that, its comment says so.
package peer

import (
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Limits are the limits of one run. A peer that knows no idle limit ignores Idle.
type Limits struct{ Total, Idle time.Duration }

// A Beater renews the idle limit.
type Beater interface{ Beat() }

// A Func is a supervised function. Its Beater is nil where the peer has no idle limit.
type Func func(context.Context, Beater) error

// A Run supervises one call of fn.
type Run func(ctx context.Context, l Limits, fn Func) error

// Grace is how long a cancelled function may take to return before its caller goes on
// without it.
const Grace = timeout.DefaultGrace

// What a peer has as the cause and as the error.
var (
	ErrIdle  = errors.New("peer: idle limit")
	ErrTotal = errors.New("peer: total limit")
)

// ByName has every Run that has an idle limit, for programs that are told what to
// measure.
var ByName = map[string]Run{
	"tooldeadline": Tooldeadline,
	"timer-reset":  TimerReset,
	"polling":      Polling,
}

// Tooldeadline is the library itself.
func Tooldeadline(ctx context.Context, l Limits, fn Func) error {
	return timeout.Run(ctx, func(ctx context.Context) error {
		return fn(ctx, heartbeat.FromContext(ctx))
	}, timeout.Config{Total: l.Total, Idle: l.Idle})
}

// A panicked is a panic on its way from the function's goroutine to the caller's.
type panicked struct{ value any }

func (p *panicked) Error() string { return "panic" }

// call calls fn and returns its panic as an error, because nothing else gets from one
// goroutine to another.
func call(ctx context.Context, fn Func, b Beater) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	return fn(ctx, b)
}

// finish returns the function's error, or its panic.
func finish(err error) error {
	if p, ok := err.(*panicked); ok {
		panic(p.value)
	}
	return err
}

// afterStop waits for a function whose context is over, for the grace, and returns the
// reason.
func afterStop(ctx context.Context, done <-chan error) error {
	grace := time.NewTimer(Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		if _, ok := err.(*panicked); ok {
			return finish(err)
		}
	case <-grace.C:
	}
	return context.Cause(ctx)
}

// Package peer implements the alternatives that tooldeadline is compared with, each as a Run.
//
// A Run must meet this contract. The function runs on its own goroutine. Its context is cancelled at the limit, with a
// cause that identifies the limit. Run returns as soon as the function returns, or returns an error at the limit plus
// Grace at the latest. A panic of the function becomes a panic of the caller. If an alternative cannot meet the
// contract, its comment says so.
package peer

import (
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Limits are the limits of one run. A peer without an idle limit ignores Idle.
type Limits struct{ Total, Idle time.Duration }

// A Beater renews the idle limit.
type Beater interface{ Beat() }

// A Func is a supervised function. Its Beater is nil if the peer has no idle limit.
type Func func(context.Context, Beater) error

// A Run calls fn under the limits l, and returns its error, or the error of a limit.
type Run func(ctx context.Context, l Limits, fn Func) error

// Grace is how long a cancelled function may take to return before its caller continues without it.
const Grace = timeout.DefaultGrace

// The causes and errors of the peers.
var (
	ErrIdle  = errors.New("peer: idle limit")
	ErrTotal = errors.New("peer: total limit")
)

// ByName has every Run with an idle limit by its name.
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

// A panicked carries a panic from the function's goroutine to the caller's.
type panicked struct{ value any }

func (p *panicked) Error() string { return "panic" }

// call calls fn, and returns its error. It returns a panic of fn as a *panicked.
func call(ctx context.Context, fn Func, b Beater) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	return fn(ctx, b)
}

// finish returns err, or panics with its value if it is a *panicked.
func finish(err error) error {
	if p, ok := err.(*panicked); ok {
		panic(p.value)
	}
	return err
}

// afterStop waits up to Grace for a function whose context ctx has ended, and returns the cause of ctx. If the function
// panics, afterStop panics.
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

package lease

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// minDuration is three times the shortest interval between renewals.
const minDuration = 3 * time.Millisecond

// Run calls fn as [timeout.Run] does, with [timeout.WithRecover], while it holds the lease, and releases the lease
// with the outcome. If the lease is not lost, and Release succeeds or is nil, Run returns the outcome. Otherwise it
// returns an error that wraps the outcome, [ErrLost] or [ErrUnconfirmed], and the last error of Release, if there is
// one.
//
// A timer renews the lease until fn has returned or been abandoned, however silent fn is; only the limits decide that
// fn is stuck. If no renewal succeeds, fn is stopped, with a cause that wraps [ErrLost] and names the reason. This
// happens a sixth of Duration before the lease ends or, if that is earlier, the grace of fn and a twentieth of
// Duration before, but not in the first half of Duration after the newest successful renewal was sent. It happens at
// once if Renew returns ErrLost. After that nothing is sent. If the lease has ended before fn is called, Run returns
// ErrLost.
//
// Run returns when the lease is released, and no later than its end. If ctx has ended, or the lease has no end, Run
// tries to release it for no more than 5 s; if that fails, its error wraps [ErrUnconfirmed]. Run panics with a
// [*timeout.ConfigError] if Renew is nil or Duration is positive but below 3 ms, and under the same conditions as
// timeout.Run.
func Run(ctx context.Context, l Lease, fn func(context.Context) error, opts ...timeout.Option) error {
	if fn == nil {
		panic(&timeout.ConfigError{Key: "function", Value: "nil", Accepted: "one that is not nil"})
	}
	if l.Renew == nil {
		panic(&timeout.ConfigError{Key: "lease.Lease.Renew", Value: "nil", Accepted: "a function"})
	}
	if 0 < l.Duration && l.Duration < minDuration { // probably a number of seconds without its unit
		panic(&timeout.ConfigError{Key: "lease.Lease.Duration", Value: l.Duration.String(), Accepted: "3ms or more"})
	}
	h := newHolder(ctx, l, opts)
	work, lose := context.WithCancelCause(context.WithValue(ctx, key{}, held{h, true}))
	defer lose(nil)
	if !h.begin(work, lose) {
		return ErrLost
	}
	err := timeout.Run(work, func(ctx context.Context) error {
		h.cell.Store(pulse.Of(ctx))
		return fn(ctx)
	}, append([]timeout.Option{timeout.WithRecover()}, opts...)...)
	return h.conclude(work, err)
}

// Check returns [ErrLost] if the lease of the [Run] that has called the function is lost, by the clock of this
// machine, or if Run has begun to release it. Within nested leases, it does so if this is true of any of them. A
// function calls Check before an effect that the engine cannot fence, because a process that was paused may not have
// stopped the function yet. Outside a lease Check returns nil.
func Check(ctx context.Context) error {
	if h, ok := ctx.Value(key{}).(held); ok {
		return h.check(h.work)
	}
	return nil
}

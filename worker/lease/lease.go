package lease

import (
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ErrLost means that another worker may hold the lease. When a lease is lost, the cause of the function's context and
// the error of [Run] wrap ErrLost. Renew and Release return ErrLost, or an error that wraps it, when the engine
// refuses a write because its token is no longer the newest, or when a failed write must not be repeated.
var ErrLost = errors.New("lease lost: somebody else may hold it")

// ErrUnconfirmed means that the outcome may not be stored: Run has tried for 5 s to release a lease that still lasts,
// and no call of Release has succeeded. An error of [Run] that wraps ErrUnconfirmed does not match ErrLost, unless
// the outcome does.
var ErrUnconfirmed = errors.New("the engine has not confirmed it within 5 s")

// A Lease describes the right to do one piece of work, which an engine grants and [Run] holds.
//
// Renew and Release are never called at the same time. Each call has a context with a deadline. A call that ignores
// its context delays no stop of the work, and delays the return of Run no longer than the lease lasts, or by 5 s if
// it has no end; no other call follows until this call has returned. A panic of Renew or Release counts as an error.
type Lease struct {
	// Duration is the time for which the engine leaves the work to its holder after a renewal, 3 ms or more. 0 or
	// less means that the lease has no end and is lost only if Renew or Release returns ErrLost.
	Duration time.Duration
	// Every is the time between two renewals. 0 or less means a sixth of Duration or, if there is none, 10 s. Another
	// value below 1 ms means 1 ms, and one above a third of Duration means that third.
	Every time.Duration
	// Since is a time, on the clock of the execution, at which the engine had not granted the lease yet, such as that
	// of the request for it. The zero Time, and a time in the future, mean the time of the call of Run.
	Since time.Time
	// Token is part of every Checkpoint. The engine compares it, so that a write of an earlier holder fails. nil
	// means that the engine compares nothing.
	Token any
	// Detail is the detail of the previous attempt, as the engine returns it: a string may have become JSON. It is
	// part of every Checkpoint until the work has a detail of its own. nil means no detail.
	Detail any
	// Renew extends the lease by Duration from now on. After an error that does not match ErrLost it is called again
	// while the work runs and the lease lasts. Run panics if Renew is nil.
	Renew func(context.Context, Checkpoint) error
	// Release stores the outcome and gives up the lease. After an error that does not match ErrLost it is called again
	// while the lease lasts, but for at most 5 s if it has no end or the context of Run has ended. A nil Release means
	// that other code does this, such as the framework that calls Run; then Renew is called once more, with the newest
	// detail, if the work has failed.
	Release func(context.Context, Checkpoint) error
}

// A Checkpoint describes the work in a call of Renew or Release.
type Checkpoint struct {
	Token any // the Token of the Lease
	// Detail is the newest detail of the work, such as of heartbeat.BeatWith, except one that describes a wait, as of
	// progress.Await. If there is none, it is the Detail of the Lease.
	Detail any
	Err    error // the outcome that timeout.Run returns; nil while the work runs and after its success
}

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

type key struct{}

// A held is the value under key in the context of the work, where work is true, and of the writes.
type held struct {
	*holder
	work bool
}

package lease

import (
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ErrLost says that another worker may hold the lease. When a lease is lost, the cause of the function's context and the
// error of [Run] wrap ErrLost. Renew and Release return ErrLost, or an error that wraps it, when the engine refuses a
// write because its token is no longer the newest, or when a failed write must not be repeated.
var ErrLost = errors.New("lease lost: somebody else may hold it")

// ErrUnconfirmed says that the outcome may not be stored: Run has tried for 5 s to release a lease that still lasts,
// and no call of Release has succeeded. An error of [Run] that wraps it does not match ErrLost.
var ErrUnconfirmed = errors.New("the engine has not confirmed it within 5 s")

// A Lease describes the right to do one piece of work, which an engine gives and [Run] holds.
//
// Renew and Release are never called at the same time. Each call has a context with a deadline. A call that ignores its
// context delays no stop of the work, and the return of Run no longer than the lease lasts; no other call follows until
// this call has returned. A panic of Renew or Release counts as an error.
type Lease struct {
	// Duration is how long the engine leaves the work to its holder after a renewal, 3 ms or more. 0 or less means that
	// only the engine says when the lease is lost.
	Duration time.Duration
	// Every is the time between two renewals, at least 1 ms and at most a third of Duration. 0 or less means a sixth of
	// Duration or, if there is none, 10 s.
	Every time.Duration
	// Since is a time at which the engine had not granted the lease yet, such as that of the request for it, on the clock
	// of the execution. The zero Time, and one that is still to come, mean the call of Run.
	Since time.Time
	// Token goes with every write. The engine compares it, so that a write of an earlier holder fails; nil means that
	// the engine compares nothing.
	Token any
	// Detail is the detail of the attempt before, as the engine gives it: a string may have become JSON. It goes
	// with every write until the work has a detail of its own. nil means no detail.
	Detail any
	// Renew extends the lease by Duration from now on. After an error other than ErrLost it is called again while the
	// lease lasts.
	// Run panics if Renew is nil.
	Renew func(context.Context, Checkpoint) error
	// Release stores the outcome and gives up the lease. After an error it is called again, as Renew is. A nil Release
	// means that other code does this, such as the framework that calls Run; then Renew is called once more with the
	// newest detail of work that has failed.
	Release func(context.Context, Checkpoint) error
}

// A Checkpoint describes the work in a call of Renew or Release.
type Checkpoint struct {
	Token  any   // of the Lease
	Detail any   // the newest detail of heartbeat.BeatWith, or else of the Lease; not that of a wait in progress.Await
	Err    error // the outcome, as timeout.Run returns it; nil while the work runs and after its success
}

// minDuration is three times the least interval of renewals.
const minDuration = 3 * time.Millisecond

// Run calls fn as [timeout.Run] does, with [timeout.WithRecover], while the lease is held, and releases it with the
// outcome. It returns the outcome if it is released, and otherwise an error that wraps both the outcome and what Release
// has returned last.
//
// The lease is renewed by a timer until fn has returned or been abandoned, however silent fn is; only the limits decide
// that fn is stuck. If no renewal succeeds, fn is stopped, with a cause that wraps [ErrLost] and says why, its grace
// and a twentieth of Duration before the lease ends or, if that is longer, a sixth of Duration before: no sooner than half of
// Duration after the newest successful renewal was sent, however long the grace is. The same happens at once if Renew returns ErrLost. From then on nothing is sent.
// If the lease has ended before fn is called, Run returns ErrLost.
//
// Run returns when the lease is released, and no later than its end. When ctx has ended, or Duration is 0, it tries for no
// more than 5 s, and its error wraps [ErrUnconfirmed] then. Run panics with a [*timeout.ConfigError] if Renew is nil or
// Duration too short, and as timeout.Run does.
func Run(ctx context.Context, l Lease, fn func(context.Context) error, opts ...timeout.Option) error {
	if fn == nil {
		panic(&timeout.ConfigError{Key: "function", Value: "nil", Accepted: "one that is not nil"})
	}
	if l.Renew == nil {
		panic(&timeout.ConfigError{Key: "lease.Lease.Renew", Value: "nil", Accepted: "a function"})
	}
	if 0 < l.Duration && l.Duration < minDuration { // most likely a number of seconds that was not multiplied
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

// Check returns [ErrLost] if the lease under which a function of [Run] works is lost, by the clock of this machine, or is
// being released or has been; of leases within each other, if one of them is. A function calls it before an effect that the engine cannot fence, since a paused process may not have
// been told yet. Outside a lease Check returns nil.
func Check(ctx context.Context) error {
	if h, ok := ctx.Value(key{}).(held); ok {
		return h.check(h.work)
	}
	return nil
}

type key struct{}

// A held is the value of a context under key: of the work's context, or of a write's.
type held struct {
	*holder
	work bool
}

package lease

import (
	"context"
	"errors"
	"time"
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

package timeout

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An execution is one supervised run, and the context of its function, and its
// heartbeat cell: one object, so that a run costs few allocations and none of them
// can outlive the others.
//
// The outcome is decided by who cancels the context first: the function that returns,
// the limit that fires or the caller. A cancelled context has one Cause for ever, and
// everything that reports reads that. A state of our own beside it would have to agree
// with it, and could not: the caller's cancellation goes past us.
//
// There is one exception. An idle limit takes the function's stack before it cancels,
// and counts from before that. If the caller cancels meanwhile, the Cause that the
// function sees is the caller's, and the outcome is the limit's.
type execution struct {
	context.Context // the function's, without what this type adds
	cancel          context.CancelCauseFunc
	caller          context.Context
	detached        bool        // from the caller's, see parent
	unfollow        func() bool // where detached

	settings
	fn func(context.Context) error

	// The heartbeat. Its lock guards what follows.
	cell  pulse.Cell
	timer pulse.Timer
	armed time.Duration // when the timer fires next; Forever where it is not set
	// decided says that no limit may fire any more: one has, or the function has
	// returned, or the caller's end was seen.
	decided   bool
	warnedFor time.Duration // the beat for whose gap NearIdle was called last, -1 for none
	stop      *Error        // the outcome, if it is a limit's
	told      time.Duration // when the context was cancelled, as far as it was us
	returned  bool
	abandoned bool
	wait      chan struct{} // closed when the function returns, if somebody waits for that
	reported  chan struct{} // closed when the abandonment has been reported

	// Written by the function's goroutine before returned is set.
	err      error
	panicked *PanicError
}

// finished is the Cause of a context whose function returned in time.
type finished execution

func (*finished) Error() string { return "timeout: the execution has ended" }

// Value gives the heartbeat, and otherwise what the caller's context does.
func (e *execution) Value(key any) any {
	if pulse.IsKey(key) {
		return &e.cell
	}
	return e.Context.Value(key)
}

// Deadline gives the total limit (SPEC 3.14), which parent has cut to the caller's.
func (e *execution) Deadline() (time.Time, bool) {
	if e.limits.Total <= 0 {
		return time.Time{}, false
	}
	return e.cell.Start().Add(e.limits.Total), true
}

// String keeps fmt from reading the fields of a context that is in use.
func (e *execution) String() string { return "timeout.Run(" + e.tool + ")" }

// prepare settles the limits and starts the clock.
func (e *execution) prepare() {
	if !e.limited {
		e.limits = currentDefault()
	}
	e.logEnvDoubts()
	if !e.limits.sound() {
		var warnings []string
		e.limits, warnings = e.limits.Normalize()
		for _, w := range warnings {
			e.logAttrs(slog.LevelWarn, w)
		}
	}
	e.limits.Grace = e.limits.grace()
	e.armed, e.warnedFor = pulse.Forever, -1
	e.cell.Init(pulse.Of(e.caller), e.clock, e.limits.Idle, (*engine)(e))
}

// parent gives what the function's context is made from, nil if the caller's deadline
// has passed.
//
// It is the caller's context, unless the caller's deadline is the total: then the
// caller's own timer would race ours and could give the function a bare
// context.DeadlineExceeded for a Cause. In that case the context is detached, and the
// caller's end is handled by callerDone. That costs a few allocations, so it is not
// done always.
func (e *execution) parent() context.Context {
	parent := e.caller
	if deadline, ok := parent.Deadline(); ok {
		left := deadline.Sub(e.cell.Start())
		if around := pulse.Of(parent); e.cell.Clock() != nil && around.Clock() == nil {
			left = time.Until(deadline) // it is on another clock than the execution
		}
		if left <= 0 {
			return nil
		}
		if e.limits.Total == 0 || left <= e.limits.Total {
			e.limits.Total = left
			e.detached = true
			parent = context.WithoutCancel(parent)
		}
	}
	if e.tool != "" {
		parent = pprof.WithLabels(parent, pprof.Labels("tool", e.tool))
	}
	return parent
}

// neverStarted is the outcome where the caller's context was over from the start
// (SPEC 3.11, 3.12).
func (e *execution) neverStarted() error {
	out := &Error{Kind: Aborted, Tool: e.tool, Cause: context.Cause(e.caller)}
	if err := e.caller.Err(); err == nil || err == context.DeadlineExceeded {
		out.Kind = Total // with a limit of 0: that was the time left
	}
	e.logAttrs(slog.LevelInfo, "tool was not started", slog.Any("error", out))
	return out
}

// callerDone handles the end of the caller's context where ours is detached from it.
func (e *execution) callerDone() {
	e.cell.Lock()
	if e.decided {
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	kind := e.due(now)
	if kind == 0 {
		kind = Aborted
		if e.caller.Err() == context.DeadlineExceeded {
			kind = Total
		}
	}
	e.fire(kind, now)
}

// main is the function's goroutine. It must not be inlined, and its receiver must be
// alive across the call: that is how a sample of all stacks tells whose this is.
//
//go:noinline
func (e *execution) main() {
	// Deferred for Goexit, and directly, because recover works nowhere else.
	normal := false
	defer func() {
		if !normal {
			if v := recover(); v != nil {
				e.panicked = newPanic(v, debug.Stack)
				e.err = e.panicked
			} else {
				e.err = ErrGoexit
			}
		}
		e.settle()
	}()
	if e.tool != "" {
		pprof.SetGoroutineLabels(e)
	}
	e.err = e.fn(e)
	normal = true
}

// settle records that the function has returned, and makes that the outcome unless
// there is one. A limit that has fallen due counts even if its timer is late, so that
// the outcome at the boundary does not depend on which of two goroutines runs first.
func (e *execution) settle() {
	e.cell.Lock()
	e.returned = true
	finish := false
	if !e.decided {
		e.decided, finish = true, true
		now := e.cell.Flush() // also for the stamp of a burst that has not ended
		if kind := e.due(now); kind != 0 {
			e.cancelWith(e.newError(kind, now))
			finish = false
		}
		if e.timer != nil {
			e.timer.Stop()
		}
	}
	wait, abandoned := e.wait, e.abandoned
	e.cell.Unlock()

	if finish {
		e.cancel((*finished)(e))
	}
	if wait != nil {
		close(wait)
	}
	if abandoned {
		e.cameBack()
	}
}

// newError is the outcome of a stop at now. The cell is locked.
func (e *execution) newError(kind Kind, now time.Duration) *Error {
	out := &Error{
		Kind: kind, Tool: e.tool, Limits: e.limits, Elapsed: now,
		SinceBeat:  max(now-e.cell.Last(), 0), // a beat may have come since now was read
		LongestGap: e.cell.Longest(now), Beats: e.cell.Count(),
	}
	switch kind {
	case Idle:
		out.Limit = e.limits.Idle
		out.SinceBeat = max(out.SinceBeat, out.Limit) // or a beat has come since it was judged
		out.LongestGap = max(out.LongestGap, out.Limit)
	case Total:
		out.Limit = e.configuredTotal()
	}
	return out
}

// configuredTotal is the total that a user knows: that of the execution around, where e
// has taken that one's deadline for its own.
func (e *execution) configuredTotal() time.Duration {
	for e.detached {
		around, ok := pulse.Of(e.caller).Engine().(*engine)
		if !ok {
			break
		}
		outer := (*execution)(around)
		mine, _ := e.Deadline()
		if theirs, ok := outer.Deadline(); !ok || !theirs.Equal(mine) {
			break // it is a plain context's
		}
		e = outer
	}
	return e.limits.Total
}

// conclude gives what Run returns, once the context is done.
func (e *execution) conclude() (returned bool, err error) {
	defer e.end()
	cause := context.Cause(e.Context)
	if cause == error((*finished)(e)) {
		if len(e.hooks) > 0 {
			e.observeNow(hookFinished, e.err)
		}
		return e.hand(e.err)
	}
	out := e.stopped(cause)
	if !e.awaitReturn() {
		e.abandon(out)
		return false, out
	}
	out.Err = e.err
	e.logStop(out)
	e.observe(hookFinished, e.snapshotOf(out))
	return e.hand(out)
}

// hand gives err to the caller, unless the function has panicked and the caller wants
// that as a panic.
func (e *execution) hand(err error) (returned bool, _ error) {
	if e.panicked == nil {
		return true, err
	}
	if !e.recovers {
		panic(relayedPanic{e.panicked})
	}
	e.logAttrs(slog.LevelError, "tool panicked", slog.Any("error", e.panicked), slog.String("stack", string(e.panicked.Stack)))
	return false, err
}

// stopped gives a copy of the outcome that Run may go on filling in: the original is
// in the function's hands.
func (e *execution) stopped(cause error) *Error {
	e.cell.Lock()
	defer e.cell.Unlock()
	e.decided = true
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.stop != nil {
		out := *e.stop
		return &out
	}
	// The caller's end, which went straight to our context; or that of a context
	// that says DeadlineExceeded without having shown a Deadline.
	now := e.cell.Flush()
	kind := Aborted
	if e.Err() == context.DeadlineExceeded {
		kind = Total
	}
	out := e.newError(kind, now)
	out.Cause, e.told = cause, now
	if kind == Total {
		out.Limit = now
	}
	return out
}

// awaitReturn waits for the function until the grace is over.
func (e *execution) awaitReturn() bool {
	e.cell.Lock()
	if e.returned {
		e.cell.Unlock()
		return true
	}
	wait := make(chan struct{})
	e.wait = wait
	left := e.limits.Grace - (e.cell.Now() - e.told)
	e.cell.Unlock()

	over := make(chan struct{})
	timer := pulse.AfterFunc(e.cell.Clock(), left, func() { close(over) })
	defer timer.Stop()
	select {
	case <-wait:
	case <-over:
	}
	// Both may be ready. A function that is back is not called abandoned.
	e.cell.Lock()
	defer e.cell.Unlock()
	if !e.returned {
		e.abandoned, e.reported = true, make(chan struct{})
		abandonedNow.Add(1)
	}
	return e.returned
}

// end leaves nothing behind.
func (e *execution) end() {
	e.cell.End()
	if e.detached {
		e.unfollow()
	}
}

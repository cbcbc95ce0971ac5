package timeout

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Execution is one call of [Run] or [Do]. [FromContext] returns the execution that a function
// runs in, and [Running] lists the executions in progress. The methods of a nil *Execution return
// zero values. An Execution must not be copied.
//
// An Execution may be used after it has ended, but it keeps everything that its function refers to
// in memory. To remember an execution, keep its [Snapshot].
type Execution struct {
	// It is one object with its function's context and its heartbeat, so that a run costs few
	// allocations and none of them can outlive the others: scope is that context, root what the
	// context is made from, and engine what judges the heartbeat.
	//
	// The outcome is decided under the cell's lock, by whoever sets decided: the function
	// that returns, the limit that fires or the end of the caller's context. The context is
	// cancelled after that, by the same one, so the error, the context's Cause, the hooks and
	// the log report one outcome.

	inner     context.Context // the function's, without what scope adds
	caller    context.Context // an *enriched if a hook has added values
	propagate func()          // cancels inner as root says
	ended     atomic.Pointer[ending]

	settings
	fn        func(context.Context) error
	watch     *watchers               // those of the process, when it began
	observing *observation            // where limits are only observed
	entry     atomic.Pointer[entry]   // nil for most
	closing   atomic.Pointer[closing] // nil for most

	// The heartbeat. Its lock guards what follows.
	cell  pulse.Cell
	timer pulse.Timer
	armed time.Duration // when the timer fires next; Forever where it is not set
	wait  chan struct{} // closed when the function returns or the grace is over, if Run waits for that
	// decided says that no limit may fire any more: one has, or the function has
	// returned, or the caller's end was seen.
	decided       bool
	returned      bool
	abandoned     bool
	borrowed      bool          // the total that is enforced is what was left of the caller's deadline
	byHand        bool          // it was aborted by Abort
	awaitsReserve bool          // the timer fires for the reserve
	normal        bool          // the function has neither panicked nor called runtime.Goexit; it is set as err is
	stalls        *stalls       // nil where there were none
	warnedFor     time.Duration // the beat for whose gap NearIdle was called last, -1 for none
	cancelledAt   time.Duration // where the grace begins
	returnedAt    time.Duration

	// Written by who decides, before the context is cancelled.
	stop *Error // the outcome, nil if the function has returned in time

	// Written by the function's goroutine before returned is set.
	err      error
	panicked *PanicError
}

// prepare settles the limits and starts the clock.
func (e *Execution) prepare() {
	if !e.limited {
		e.takeDefault()
	}
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
	if e.observe {
		e.observing = new(observation)
	}
	if e.tool != "" {
		e.caller = pprof.WithLabels(e.caller, pprof.Labels("tool", e.tool))
	}
}

// borrowTotal makes the caller's deadline the total where it comes first (SPEC 3.12). It
// reports false if that has passed.
func (e *Execution) borrowTotal() bool {
	left, ok := e.callersLeft()
	if !ok {
		return true
	}
	first := e.limits.Total == 0 || left <= e.limits.Total
	if left > 0 && first {
		e.limits.Total, e.borrowed = left, true
	}
	if o := e.observing; o != nil {
		o.cap, e.borrowed = left, true // also where the total, which is not enforced, comes first
	}
	return left > 0
}

// callersLeft is what is left of the caller's deadline, false if there is none.
func (e *Execution) callersLeft() (left time.Duration, ok bool) {
	deadline, ok := e.caller.Deadline()
	if e.cell.Clock() == nil {
		return deadline.Sub(e.cell.Start()), ok
	}
	outer := e.encloser()
	if outer == nil {
		return time.Until(deadline), ok
	}
	left, ok, exact := remaining(e.caller, outer)
	if exact && e.clock == nil { // it is the same clock
		return outer.cap() - e.cell.Start().Sub(outer.cell.Start()), ok
	}
	return left, ok
}

// left is what is left of the total that is enforced.
func (e *Execution) left() time.Duration { return e.cap() - e.cell.Now() }

// neverStarted is the outcome where the caller's context was over from the start
// (SPEC 3.11, 3.12).
func (e *Execution) neverStarted() error {
	out := &Error{Kind: KindTotal, Tool: e.tool} // with a limit of 0: that was the time left
	if e.caller.Err() != nil {
		out.Cause = context.Cause(e.caller)
		out.Kind = callersKind(e.caller.Err(), out.Cause)
		if around := e.enclosingTimeout(e.caller.Err(), out.Cause); around != nil {
			out.Kind, out.Limit = around.Kind, around.Limit
		}
	}
	return e.logNotStarted(out)
}

// tooLittleLeft is the outcome where less is left than is needed (SPEC 3.21).
func (e *Execution) tooLittleLeft(needed time.Duration) error {
	return e.logNotStarted(&Error{Kind: KindTotal, Tool: e.tool, Needed: needed, Limit: e.cap()})
}

func (e *Execution) logNotStarted(out *Error) error {
	e.logAttrs(slog.LevelInfo, "tool was not started", slog.Any("error", out))
	return out
}

// callersKind is what the end of a caller's context means for what runs under it. A
// deadline is a total. But an idle limit of an execution around, which its context shows
// as a deadline too, is an abort.
func callersKind(err, cause error) Kind {
	if err != context.DeadlineExceeded {
		return KindAborted
	}
	if around, ok := cause.(*Error); ok && around.Kind != KindTotal {
		return KindAborted
	}
	return KindTotal
}

// callerDone handles the end of the caller's context. It may be called more than once.
func (e *Execution) callerDone() {
	e.cell.Lock()
	if e.decided {
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	e.fire(e.newError(e.due(now), now))
}

// main is the function's goroutine. It must not be inlined, and its receiver must be
// alive across the call: that is how a sample of all stacks tells whose this is.
//
//go:noinline
func (e *Execution) main() {
	// Deferred for Goexit, and directly, because recover works nowhere else.
	defer func() {
		if !e.normal {
			if v := recover(); v != nil {
				e.panicked = e.newPanic(v)
				e.err = e.panicked
			} else {
				e.err = &goexitError{Tool: e.tool}
			}
		}
		e.settle()
	}()
	if e.tool != "" {
		pprof.SetGoroutineLabels((*scope)(e))
	}
	e.err = e.fn((*scope)(e))
	e.normal = true
}

// settle records that the function has returned, and makes that the outcome unless
// there is one. A limit that has fallen due, or the end of the caller's context, counts
// even if its goroutine is late, so that the outcome does not depend on which of the two
// runs first.
func (e *Execution) settle() {
	e.cell.Lock()
	e.returned = true
	first := !e.decided
	if first {
		now := e.cell.Flush() // also for the stamp of a burst that has not ended
		e.returnedAt = now
		if kind := e.due(now); kind != 0 || e.caller.Err() != nil {
			e.decide(e.newError(kind, now))
		} else {
			e.decide(nil)
		}
	} else {
		e.returnedAt = e.cell.Now()
	}
	wait := e.wait
	e.wait = nil
	abandoned := e.abandoned
	if abandoned {
		abandonedNow.Add(-1)
	}
	e.cell.Unlock()

	if first {
		e.cancel()
	}
	if wait != nil {
		close(wait)
	}
	if abandoned {
		e.returnedLate()
	}
}

// decide sets the outcome: nil where the function has returned in time. The cell is
// locked, and nobody has decided before.
func (e *Execution) decide(stop *Error) {
	e.decided, e.stop = true, stop
	if stop != nil {
		e.cancelledAt = stop.Elapsed
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// newError is the outcome of a stop at now, by the limit that has fallen due or, where
// that is 0, by the end of the caller's context. The cell is locked.
func (e *Execution) newError(due Kind, now time.Duration) *Error {
	kind := due
	if due == 0 {
		err, cause := e.caller.Err(), e.callersCause()
		if around := e.enclosingTimeout(err, cause); around != nil {
			out := e.errorAt(around.Kind, now)
			out.Limit, out.Cause = around.Limit, around
			return out
		}
		kind = callersKind(err, cause)
	}
	out := e.errorAt(kind, now)
	switch kind {
	case KindTotal:
		around := e.totalOf()
		out.Limit = around.cap()
		switch {
		case around.borrowed:
			// Whether the caller's own timer has fired by now is a matter of chance, so its
			// Cause is not asked for.
			out.Cause = context.DeadlineExceeded
		case due == 0:
			out.Limit, out.Cause = now, e.callersCause() // a deadline that was not shown
		}
	case KindAborted:
		out.Cause = e.callersCause()
	}
	return out
}

// errorAt is an outcome at now with the execution's own limit, if it is one. The cell is
// locked.
func (e *Execution) errorAt(kind Kind, now time.Duration) *Error {
	out := &Error{
		Kind: kind, Tool: e.tool, Limits: e.limits, Elapsed: now,
		SinceBeat:  max(now-e.cell.Last(), 0), // a beat may have come since now was read
		LongestGap: e.cell.Longest(now), Beats: e.cell.Count(), Detail: e.cell.Detail(), Stalls: e.stalls.sum().count,
	}
	switch kind {
	case KindIdle:
		out.Limit = e.limits.Idle
		out.SinceBeat = max(out.SinceBeat, out.Limit) // or a beat has come since it was judged
		out.LongestGap = max(out.LongestGap, out.Limit)
	case KindTotal:
		out.Limit = e.limits.Total
	}
	return out
}

// cap is the total that is enforced, 0 if none is.
func (e *Execution) cap() time.Duration {
	if e.observing != nil {
		return e.observing.cap
	}
	return e.limits.Total
}

// totalOf is the execution whose total e's is, as a user knows it: one around e, where e has
// taken that one's deadline for its own.
func (e *Execution) totalOf() *Execution {
	for e.borrowed {
		outer := e.around()
		if outer == nil {
			break
		}
		mine, theirs := e.cell.Start().Add(e.cap()), outer.cell.Start().Add(outer.cap())
		if outer.cap() <= 0 || !theirs.Equal(mine) {
			break // it is a plain context's
		}
		e = outer
	}
	return e
}

// around is the execution around, or nil.
func (e *Execution) around() *Execution { return around(e.cell.Around()) }

// around is the execution that has the cell, or nil.
func around(c *pulse.Cell) *Execution {
	engine, _ := c.Engine().(*engine)
	return (*Execution)(engine)
}

// conclude is what Run returns, once the context is done.
func (e *Execution) conclude() (returned bool, err error) {
	defer e.end()
	var out *Error
	if e.stop != nil {
		out = new(Error)
		*out = *e.stop // which the function may be reading
	}
	reported := false
	defer func() {
		if !reported {
			_, _ = e.resolve(out) // a hook has called runtime.Goexit, and Finished is due all the same
		}
	}()
	e.reportStop(out)
	reported = true
	return e.resolve(out)
}

// reportStop reports what there is to say before the function is waited for.
func (e *Execution) reportStop(out *Error) {
	if e.stalls != nil {
		e.reportStall(e.stalls.unreported)
	}
	if e.observing != nil {
		e.reportExceeded()
	}
	if out == nil || !out.Timeout() {
		return
	}
	if e.command != nil && out.Stack == nil {
		out.Stack = e.command.Describe(true) // the limit was found by whoever came too late
	}
	if e.observing == nil && e.wants(hookExceeded) {
		e.exceeded(out)
	}
}

// resolve waits for the function, tells how it ended, and returns that.
func (e *Execution) resolve(out *Error) (returned bool, err error) {
	if out != nil && !e.awaitReturn() {
		e.abandon(out)
		return false, out
	}
	if out != nil {
		out.Err = e.err
	}
	if e.command != nil {
		return e.deliver(e.concludeCommand(out))
	}
	if out != nil && e.log != nil {
		e.logStop(out)
	}
	if e.observing != nil || e.wants(hookFinished) {
		e.finished(out)
	}
	if out != nil {
		return e.deliver(out)
	}
	return e.deliver(e.err)
}

// end leaves nothing behind but what was abandoned.
func (e *Execution) end() {
	e.cell.End()
	if e.closing.Load() != nil {
		e.leaveEncloser()
	}
	if c := e.command; c != nil {
		e.cell.Lock()
		c.told = true
		e.cell.Unlock()
	}
	if n := e.entry.Load(); n != nil && !e.abandoned {
		n.remove()
	}
}

// deliver returns err to the caller, unless the function has panicked and the caller wants
// that as a panic.
func (e *Execution) deliver(err error) (returned bool, _ error) {
	if e.panicked == nil {
		return true, err
	}
	if !e.recovers {
		e.relayPanic()
	}
	e.logPanic("tool panicked")
	return false, err
}

// awaitReturn waits for the function until the grace is over. The timer has no other work by
// then: what falls due no longer matters. Rejected: a timer and a channel for the grace alone,
// which is much for each of a hundred thousand limits that fall due at once.
func (e *Execution) awaitReturn() bool {
	e.cell.Lock()
	if !e.returned {
		// The cancellation has woken a function that listens as well as this goroutine. Once
		// it has had its turn it has mostly returned, and needs no timer and no wait.
		e.cell.Unlock()
		runtime.Gosched()
		e.cell.Lock()
	}
	now := e.cell.Now()
	// Run itself may be late, by the time that a hook took.
	left := max(e.limits.Grace, 0) - (now - e.cancelledAt)
	if !e.returned && (e.command != nil || left > 0) {
		wait := make(chan struct{})
		e.wait = wait
		if e.command == nil { // that of a command has no grace here
			e.armed = pulse.Forever
			e.armFor(now+min(left, pulse.Forever-now), now)
		}
		e.cell.Unlock()
		<-wait
		e.cell.Lock()
	}
	returned := e.returned
	switch {
	case !returned:
		e.abandoned = true
		abandonedNow.Add(1)
		n := e.identity()
		n.reported = make(chan struct{})
		n.insert() // before it can return, and be removed
	case e.timer != nil:
		e.timer.Stop()
	}
	e.cell.Unlock()
	return returned
}

// endGrace ends the wait for the function if the grace is over at now. A firing that was under
// way when the outcome was decided may come before that, and changes nothing. Where the function
// returns at the same moment, whichever locks the cell first ends the wait, and a function that
// has returned by the time that Run has the lock is not abandoned. The cell is locked.
func (e *Execution) endGrace(now time.Duration) {
	if e.wait != nil && e.command == nil && now >= e.armed {
		close(e.wait)
		e.wait = nil
	}
}

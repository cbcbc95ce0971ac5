package timeout

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// conclude returns the results of run after the context is done. It calls no code of the caller's.
func (e *Execution) conclude() (returned bool, err error) {
	defer e.end() // deferred, since the function's panic may be passed on
	var out *Error
	if e.stop != nil {
		out = new(Error)
		*out = *e.stop // a copy: the function may be reading the original
		if !e.awaitReturn() {
			e.abandon(out)
			return false, e.unreported(out, out)
		}
		out.Err = e.err
	}
	switch {
	case e.command != nil:
		err = e.concludeCommand(out)
	case out != nil:
		err = out
		if e.reports != nil {
			e.deliver(e.reportStopped(out), false)
		}
	default:
		err = e.err
	}
	err = e.unreported(out, err)
	if e.panicked() != nil && !e.recovers {
		e.relayPanic()
	}
	return e.panicked() == nil, err
}

// concludeCommand ends the command, and reports what the call returns to the hooks and the log: out, if
// the execution was stopped, unless the command could not be started in the first place.
func (e *Execution) concludeCommand(out *Error) error {
	var s Snapshot // before anything is killed: the figures leave that out
	outcome := e.err
	if out != nil {
		s, outcome = e.snapshotOf(out, StateEnded), out
	} else {
		s = e.snapshot(nil)
	}
	left, leftovers, final := e.command.Conclude(outcome)
	stopped := out != nil && final == error(out)
	_, ownStop := final.(command.Stop)
	s.State, s.Err, s.Leftovers, s.Returned = StateEnded, final, leftovers, e.normal && !stopped && !ownStop
	e.cell.Lock()
	e.command.concluded, e.command.final, e.command.returned = true, final, s.Returned
	e.cell.Unlock()
	mine := false
	switch {
	case stopped:
		s.Stack = out.Stack // Conclude may have completed it
		mine = e.logStop(out)
	case ownStop:
		s.Stack = nil
		mine = e.postLog(slog.LevelWarn, "command was stopped", errorAttr(final))
	default:
		s.Stack = nil
	}
	if left != nil {
		mine = e.postLog(slog.LevelWarn, "command left something behind", append(left, errorAttr(final))...) || mine
	}
	mine = e.logObserved(&s) || mine
	mine = e.postHook(hookFinished, &s) || mine
	e.deliver(mine, false)
	return final
}

// awaitReturn waits for the function until the grace is over, and reports whether the function has returned.
// If it returns at that very moment, the first to lock the cell decides: a function that has returned by the
// time that Run has the lock is not abandoned.
func (e *Execution) awaitReturn() bool {
	e.cell.Lock()
	if !e.returned {
		// The cancellation has woken this goroutine and a function that listens. After a turn,
		// the function has mostly returned, and needs no timer and no wait.
		e.cell.Unlock()
		runtime.Gosched()
		e.cell.Lock()
	}
	now := e.cell.Now()
	left := max(e.limits.Grace, 0) - (now - e.cancelledAt)
	over := now + min(left, pulse.Forever-now)
	for !e.returned {
		if e.command != nil && e.begun { // the function of a command has no grace here
			over = pulse.Forever
		}
		if now >= over {
			break
		}
		e.waitUntil(over, now)
		now = e.cell.Now()
	}
	returned := e.returned
	switch {
	case !returned:
		e.abandoned = true
		e.identity().reported = make(chan struct{})
		e.settle() // before the function can return
	case e.timer != nil:
		e.timer.Stop()
	}
	e.cell.Unlock()
	return returned
}

// unreported waits for the hooks and the logger, and returns the outcome. If they have not returned in time, and the
// outcome is out, it returns a copy of out that says so: they may be reading out itself.
func (e *Execution) unreported(out *Error, outcome error) error {
	if e.awaitReports() || out == nil || outcome != error(out) {
		return outcome
	}
	late := *out
	late.Unreported = true
	return &late
}

// leastPatience is the time for which Run waits for hooks if the grace is shorter or there is no grace.
const leastPatience = 100 * time.Millisecond

// awaitReports waits until all reports have been delivered, and reports false if that takes too long. It is
// called once, at the end of Run.
func (e *Execution) awaitReports() bool {
	r := e.reports
	if r == nil {
		return true
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if r.busy {
		// After a return in time, the function's goroutine delivers the reports, and
		// mostly needs no timer.
		e.cell.Unlock()
		runtime.Gosched()
		e.cell.Lock()
	}
	for r.busy {
		patience := max(e.limits.grace(), leastPatience)
		now, until := e.cell.Now(), r.since+min(patience, pulse.Forever-r.since)
		if now >= until {
			r.late = true
			e.settle()
			return false
		}
		e.waitUntil(until, now)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	return true
}

// end releases all that the execution holds, except for an abandoned function and hooks that do not return.
func (e *Execution) end() {
	e.cell.End()
	if c := e.closing.Load(); c != nil && c.entered.Load() {
		c.leave(e)
	}
	if e.command == nil && e.entry.Load() == nil {
		return
	}
	e.cell.Lock()
	if c := e.command; c != nil {
		c.reported = true
	}
	e.settle()
	e.cell.Unlock()
}

// neverStarted returns the outcome of an execution whose caller's context had already ended, or whose
// inherited deadline had passed (SPEC 3.11, 3.12).
func (e *Execution) neverStarted() error {
	out := &Error{Kind: ErrTotal, Figures: Figures{Tool: e.tool, Operation: e.operation}} // the limit is 0, the time that was left
	if e.caller.Err() != nil {
		out.Cause = context.Cause(e.caller)
		out.Kind = callersKind(e.caller.Err(), out.Cause)
		if outer := e.enclosingTimeout(e.caller.Err(), out.Cause); outer != nil {
			out.Kind, out.Limit = outer.Kind, outer.Limit
		}
	} else if e.inherits {
		out.Cause = inherited().cause
	}
	return e.logNotStarted(out)
}

// tooLittleLeft returns the outcome of an execution that has less time left than Need asks for (SPEC 3.21).
func (e *Execution) tooLittleLeft(needed time.Duration) error {
	return e.logNotStarted(&Error{Kind: ErrTotal, Figures: Figures{Tool: e.tool, Operation: e.operation}, Needed: needed, Limit: e.cap()})
}

// logNotStarted logs an execution that has not begun, and returns its outcome.
func (e *Execution) logNotStarted(out *Error) error {
	if e.log == nil {
		return out
	}
	if e.cell.Engine() == nil { // its caller's context had ended
		e.cell.Init(nil, e.clock, 0, (*engine)(e))
	}
	e.cell.Lock()
	e.decided, e.reports.since = true, e.cell.Now()
	e.cell.Unlock()
	logged := *out
	e.postLog(slog.LevelInfo, "tool was not started", slog.Any("error", &logged))
	go e.drain() // no other goroutine would
	err := e.unreported(out, out)
	e.cell.End()
	return err
}

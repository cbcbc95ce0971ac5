package timeout

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// conclude waits for the function to return, and returns the results of run. The context is done. conclude runs none
// of the caller's code on its own goroutine.
func (e *Execution) conclude() (returned bool, err error) {
	defer e.end() // deferred, because relayPanic may panic
	var out *Error
	if e.stop != nil {
		out = new(Error)
		*out = *e.stop // a copy, because the function may read the original
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

// concludeCommand ends the command, reports the result of the call to the hooks and the log, and returns it. The
// result is out if the execution was stopped, unless the command could not even be started.
func (e *Execution) concludeCommand(out *Error) error {
	var s Snapshot // taken before processes are killed, so that the figures exclude that time
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
		s.Stack = out.Stack // Conclude may have set it
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

// awaitReturn waits for the function until the grace is over, and reports whether the function has returned. A
// function that returns just then is abandoned only if Run locks the cell first.
func (e *Execution) awaitReturn() bool {
	e.cell.Lock()
	if !e.returned {
		// The cancellation has woken this goroutine and a function that waits for its context. If the function runs
		// first, it has usually returned by the time Gosched does, and no wait is needed.
		e.cell.Unlock()
		runtime.Gosched()
		e.cell.Lock()
	}
	now := e.cell.Now()
	left := max(e.limits.Grace, 0) - (now - e.cancelledAt)
	over := now + min(left, pulse.Forever-now)
	for !e.returned {
		if e.command != nil && e.begun { // package procgroup bounds the wait for a command itself
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
		e.settle() // counted under the lock, before the function can return
	case e.timer != nil:
		e.timer.Stop()
	}
	e.cell.Unlock()
	return returned
}

// unreported waits for the hooks and the logger, and returns outcome. If they have not returned in time and outcome
// is out, it returns a copy of out with Unreported set, because they may be reading out.
func (e *Execution) unreported(out *Error, outcome error) error {
	if e.awaitReports() || out == nil || outcome != error(out) {
		return outcome
	}
	late := *out
	late.Unreported = true
	return &late
}

// leastPatience is the least time for which Run waits for hooks, even if the grace is shorter.
const leastPatience = 100 * time.Millisecond

// awaitReports waits until all reports have been delivered, and returns false if that takes longer than the grace.
// Run calls it once, at its end.
func (e *Execution) awaitReports() bool {
	r := e.reports
	if r == nil {
		return true
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if r.busy {
		// After a return in time, the function's goroutine delivers the reports. It has usually finished when Gosched
		// returns.
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

// end ends the heartbeat, and takes the execution off the list of Running and out of the enclosing execution's
// closing. An execution that has left a goroutine behind stays on the list.
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

// neverStarted logs and returns the outcome of an execution whose function is not called, because the caller's
// context has ended or the deadline of the caller or of TOOL_DEADLINE has passed (SPEC 3.11, 3.12).
func (e *Execution) neverStarted() error {
	out := &Error{Kind: ErrTotal, Figures: Figures{Tool: e.tool, Operation: e.operation}} // Limit is 0: no time left
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

// tooLittleLeft logs and returns the outcome of an execution with less time left than Need requires (SPEC 3.21).
func (e *Execution) tooLittleLeft(needed time.Duration) error {
	return e.logNotStarted(&Error{Kind: ErrTotal, Figures: Figures{Tool: e.tool, Operation: e.operation}, Needed: needed, Limit: e.cap()})
}

// logNotStarted logs out, the outcome of an execution that was not started, and returns it.
func (e *Execution) logNotStarted(out *Error) error {
	if e.log == nil {
		return out
	}
	if e.cell.Engine() == nil { // prepare was not called
		e.cell.Init(nil, e.clock, 0, (*engine)(e))
	}
	e.cell.Lock()
	e.decided, e.reports.since = true, e.cell.Now()
	e.cell.Unlock()
	logged := *out
	e.postLog(slog.LevelInfo, "tool was not started", slog.Any("error", &logged))
	go e.drain()  // the function's goroutine, which delivers first, is not started
	defer e.end() // takes the execution off the list if its log handler has returned meanwhile
	return e.unreported(out, out)
}

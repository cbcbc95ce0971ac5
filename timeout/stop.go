package timeout

import (
	"context"
	"log/slog"
	"time"
)

// neverStarted returns the outcome if the caller's context had already ended (SPEC 3.11,
// 3.12).
func (e *Execution) neverStarted() error {
	out := &Error{Kind: KindTotal, Tool: e.tool, Operation: e.operation} // with a limit of 0: that was the time left
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

// tooLittleLeft returns the outcome if less time is left than is needed (SPEC 3.21).
func (e *Execution) tooLittleLeft(needed time.Duration) error {
	return e.logNotStarted(&Error{Kind: KindTotal, Tool: e.tool, Operation: e.operation, Needed: needed, Limit: e.cap()})
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
	go e.drain() // there is nobody else who would
	err := e.unreported(out, out)
	e.cell.End()
	return err
}

// callersKind returns the kind of a stop by the end of the caller's context. A deadline is
// a total. But the idle limit of an enclosing execution, which its context shows as a
// deadline too, is an abort.
func callersKind(err, cause error) Kind {
	if err != context.DeadlineExceeded {
		return KindAborted
	}
	if outer, ok := cause.(*Error); ok && outer.Kind != KindTotal {
		return KindAborted
	}
	return KindTotal
}

// newError returns the outcome of a stop at now, by the limit that has fallen due or, if
// due is 0, by the end of the caller's context. The cell is locked.
func (e *Execution) newError(due Kind, now time.Duration, by end) *Error {
	kind := due
	if due == 0 {
		if outer := e.enclosingTimeout(by.err, by.cause); outer != nil {
			out := e.errorAt(outer.Kind, now)
			out.Limit, out.Cause = outer.Limit, outer
			return out
		}
		kind = callersKind(by.err, by.cause)
	}
	out := e.errorAt(kind, now)
	switch kind {
	case KindTotal:
		owner := e.totalOf()
		out.Limit = owner.cap()
		switch {
		case owner.borrowed:
			out.Cause = by.ofDeadline()
		case owner.inherits && (due != 0 || owner != e):
			out.Cause = inherited().cause
		case due == 0:
			out.Limit, out.Cause = now, by.cause // a deadline that was not shown
		}
	case KindAborted:
		out.Cause = by.cause
	}
	return out
}

// errorAt returns an outcome at now, with the execution's own limit if the kind is one. The
// cell is locked.
func (e *Execution) errorAt(kind Kind, now time.Duration) *Error {
	out := &Error{
		Kind: kind, Tool: e.tool, Limits: e.limits, Elapsed: now, Operation: e.operation,
		SinceBeat:  max(now-e.cell.Last(), 0), // a beat may have come since now was read
		LongestGap: e.cell.Longest(now), Beats: e.cell.Count(), Detail: e.cell.Detail(), Stalls: e.stalls.sum().count,
	}
	switch kind {
	case KindIdle:
		out.Limit = e.limits.Idle
		out.SinceBeat = max(out.SinceBeat, out.Limit) // a beat may have come since the limit was judged
		out.LongestGap = max(out.LongestGap, out.Limit)
	case KindTotal:
		out.Limit = e.limits.Total
	}
	return out
}

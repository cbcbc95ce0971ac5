package timeout

import (
	"context"
	"time"
)

// This file makes the error of a stop: by a limit, or by the end of the caller's context.

// An end holds the Err and the Cause with which the caller's context has ended. The zero end means that they have
// not been read.
type end struct{ err, cause error }

// ofDeadline returns the Cause of an execution that the caller's deadline has stopped.
func (by end) ofDeadline() error {
	if by.err != context.DeadlineExceeded || by.cause == nil {
		return context.DeadlineExceeded // the context was cancelled as well, or gives no cause
	}
	if outer, ok := by.cause.(*Error); ok && outer.Kind == ErrTotal && outer.Cause != nil {
		return outer.Cause // the same deadline, as an enclosing execution reported it
	}
	return by.cause
}

// callersKind returns the kind of a stop by the end of the caller's context. A deadline is
// a total. But the idle limit of an enclosing execution, which its context shows as a
// deadline too, is an abort.
func callersKind(err, cause error) Kind {
	if err != context.DeadlineExceeded {
		return ErrAborted
	}
	if outer, ok := cause.(*Error); ok && outer.Kind != ErrTotal {
		return ErrAborted
	}
	return ErrTotal
}

// enclosingTimeout returns the timeout of an enclosing execution that has ended the context of
// a command's caller with err and cause, or nil. To a function that is an abort, but a command
// has timed out. A timeout that code took from elsewhere as its reason to cancel is an abort.
func (e *Execution) enclosingTimeout(err, cause error) *Error {
	stop, ok := cause.(*Error)
	if e.command == nil || !ok || !stop.Timeout() {
		return nil
	}
	if err == context.DeadlineExceeded {
		return stop
	}
	// Where contexts are merged, the Err is context.Canceled, and the Cause is passed on.
	for outer := e.enclosing(); outer != nil; outer = outer.enclosing() {
		outer.cell.Lock()
		same := outer.stop == stop
		outer.cell.Unlock()
		if same {
			return stop
		}
	}
	return nil
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
	case ErrTotal:
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
	case ErrAborted:
		out.Cause = by.cause
	}
	return out
}

// errorAt returns an outcome at now, with the execution's own limit if the kind is one. The
// cell is locked.
func (e *Execution) errorAt(kind Kind, now time.Duration) *Error {
	out := &Error{Kind: kind, Figures: e.figures(now)}
	switch kind {
	case ErrIdle:
		out.Limit = e.limits.Idle
		out.SinceBeat = max(out.SinceBeat, out.Limit) // a beat may have come since the limit was judged
		out.LongestGap = max(out.LongestGap, out.Limit)
	case ErrTotal:
		out.Limit = e.limits.Total
	}
	return out
}

// figures returns the Figures at now. The cell is locked.
func (e *Execution) figures(now time.Duration) Figures {
	return Figures{
		Tool: e.tool, Operation: e.operation, Limits: e.limits,
		Elapsed: now, SinceBeat: max(now-e.cell.Last(), 0), // a beat may have come since now was read
		LongestGap: e.cell.Longest(now), Beats: e.cell.Count(), Detail: e.cell.Detail(), Stalls: e.stalls.sum().count,
	}
}

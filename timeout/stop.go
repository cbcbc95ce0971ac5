package timeout

import (
	"context"
	"time"
)

// This file creates the error of a stop, by a limit or by the end of the caller's context.

// An end holds the Err and the Cause of the caller's context after its end. The zero end means that they have not
// been read.
type end struct{ err, cause error }

// ofDeadline returns the Cause of the error of an execution that the caller's deadline has stopped.
func (by end) ofDeadline() error {
	if by.err != context.DeadlineExceeded || by.cause == nil {
		return context.DeadlineExceeded // the context was cancelled as well, or has no cause
	}
	if outer, ok := by.cause.(*Error); ok && outer.Kind == ErrTotal && outer.Cause != nil {
		return outer.Cause // the same deadline has stopped an enclosing execution
	}
	return by.cause
}

// callersKind returns the Kind of a stop by the end of the caller's context: ErrTotal for a deadline, and otherwise
// ErrAborted. An idle timeout of an enclosing execution is an abort, although the Err of its context is
// DeadlineExceeded.
func callersKind(err, cause error) Kind {
	if err != context.DeadlineExceeded {
		return ErrAborted
	}
	if outer, ok := cause.(*Error); ok && outer.Kind != ErrTotal {
		return ErrAborted
	}
	return ErrTotal
}

// enclosingTimeout returns the timeout of an enclosing execution that has ended the context of a command's caller
// with err and cause. It returns nil for any other end, and always for a function: an enclosing idle timeout aborts a
// nested function, whose own total covers an enclosing one, but it times out a nested command. A timeout
// of an unrelated execution, given as a cause to a CancelCauseFunc, is an abort.
func (e *Execution) enclosingTimeout(err, cause error) *Error {
	stop, ok := cause.(*Error)
	if e.command == nil || !ok || !stop.Timeout() {
		return nil
	}
	if err == context.DeadlineExceeded {
		return stop
	}
	// A context that merges others may have context.Canceled as its Err and pass the Cause on.
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

// newError returns the outcome of a stop at now: by the limit due or, if due is 0, by the end of the caller's
// context, which by describes. The cell is locked.
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
			out.Limit, out.Cause = now, by.cause // the context's Deadline method did not report this deadline
		}
	case ErrAborted:
		out.Cause = by.cause
	}
	return out
}

// errorAt returns an outcome of the given kind at now, with the execution's own limit. The cell is locked.
func (e *Execution) errorAt(kind Kind, now time.Duration) *Error {
	out := &Error{Kind: kind, Figures: e.figures(now)}
	switch kind {
	case ErrIdle:
		out.Limit = e.limits.Idle
		out.SinceBeat = max(out.SinceBeat, out.Limit) // a beat may have come after the limit was checked
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

package timeout

import (
	"context"
	"reflect"
	"time"
)

// This file is about the end of the caller's context. That context may be anybody's: its methods may
// take locks, or not return. So nothing of it is called with a lock held, nor by a goroutine that has a
// limit to enforce. Everybody may look at its channel, which has been asked for at the start, and the
// goroutine that notices the end asks how the context has ended, before it locks the cell.

// callersDelay is how long an outcome waits for the goroutine that asks how the caller's context has ended: for a
// deadline that has passed, or for an end that came before the function's return. Two timers of the same instant
// are often a little apart, and farther on a busy machine. Only a context that shows a deadline
// and does not end by it makes a stop as late as this.
const callersDelay = 100 * time.Millisecond

// An end is how the caller's context has ended. It is zero if that has not been asked.
type end struct{ err, cause error }

// ofDeadline returns the Cause of an execution that the caller's deadline has stopped.
func (by end) ofDeadline() error {
	if by.err != context.DeadlineExceeded || by.cause == nil {
		return context.DeadlineExceeded // it was cancelled as well, or does not tell
	}
	if outer, ok := by.cause.(*Error); ok && outer.Kind == KindTotal && outer.Cause != nil {
		return outer.Cause // of the same deadline, which was an enclosing execution's before
	}
	return by.cause
}

// callerEnded reports whether the caller's context has ended. The context of an enclosing execution counts
// as ended once that of its own caller has, even before the enclosing execution notices. callerEnded may be
// called with the cell locked.
func (e *Execution) callerEnded() bool {
	for {
		select {
		case <-e.callersEnd:
			return true
		default:
		}
		outer := e.enclosing()
		if outer == nil || outer.inner.Done() != e.callersEnd {
			return false
		}
		e = outer
	}
}

// callersToDecide reports whether the outcome is for callerDone to decide: kind is the limit that has
// fallen due at now, 0 if none has, and the caller's context has ended by its deadline or otherwise, or
// is about to. The timer is set for the case that it is never heard of. The cell is locked.
//
// On a clock that was given the deadline may be on another clock, and so nobody waits for it.
func (e *Execution) callersToDecide(kind Kind, now time.Duration) bool {
	switch {
	case kind == 0:
		if !e.callerEnded() {
			return false
		}
		if e.returned {
			e.arm(now+callersDelay, now)
		}
		return true
	case kind != KindTotal || e.cell.Clock() != nil || !e.totalOf().borrowed:
		return false
	}
	until := e.cap() + callersDelay
	if now >= until {
		return false
	}
	e.arm(until, now)
	return true
}

// decideForCaller makes the outcome of a function that has returned when the caller's context had
// ended, or its deadline had passed, and how it ended was not found out in time. The cell is locked, and
// unlocked on return.
func (e *Execution) decideForCaller() {
	by := end{context.Canceled, context.Canceled}
	e.fire(e.newError(e.due(e.returnedAt), e.returnedAt, by), by.err, true)
}

// callerOver handles the end of ctx, the caller's context, on the goroutine of Run. How it has ended is
// asked here if that is known to be quick.
func (e *Execution) callerOver(ctx context.Context) {
	switch reflect.TypeOf(ctx) {
	case cancelType, deadlineType, scopeType:
		e.callerDone()
	default:
		go e.callerDone()
	}
}

var cancelType, deadlineType, scopeType = func() (_, _, _ reflect.Type) {
	c, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	return reflect.TypeOf(c), reflect.TypeOf(d), reflect.TypeOf((*scope)(nil))
}()

// callerDone handles the end of the caller's context. It may be called more than once. A context whose methods
// panic or call runtime.Goexit has ended all the same.
func (e *Execution) callerDone() {
	var by end
	defer e.endByCaller(&by)
	defer func() { _ = recover() }()
	by.err = e.caller.Err()
	by.cause = context.Cause(e.caller)
}

func (e *Execution) endByCaller(by *end) {
	if by.err == nil {
		by.err = context.Canceled
	}
	e.cell.Lock()
	if e.decided {
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	if e.returned {
		now = e.returnedAt
	}
	e.fire(e.newError(e.due(now), now, *by), by.err, false)
}

// awaitCaller waits a moment until a deadline of the caller that has passed has ended its context.
func (e *Execution) awaitCaller() {
	if e.cell.Clock() != nil || e.callersEnd == nil || e.inherits {
		return
	}
	moment := time.NewTimer(callersDelay)
	defer moment.Stop()
	select {
	case <-e.callersEnd:
	case <-moment.C:
	}
}

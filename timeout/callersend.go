package timeout

import (
	"context"
	"errors"
	"time"
)

// This file handles the end of the caller's context. The methods of that context may be foreign code, which may take
// locks or block. Therefore they are not called by a goroutine that enforces a limit, nor with a lock held. Any
// goroutine may check the Done channel, which Run gets at the start. While the function runs, only callerDone reads
// how the context has ended, before it locks the cell.

// Abort stops the execution, and every execution nested in it, as the end of the caller's context would. [Run]
// returns an [*Error] of [ErrAborted] with the cause, which is also the Cause of the function's context. If cause is
// nil, the cause is an error with the text "stopped by hand".
//
// Abort reports whether this call has stopped the execution. It returns false if the function has returned, if the
// execution was stopped before, or if a limit has fallen due or the caller's context has ended.
func (e *Execution) Abort(cause error) bool {
	if e == nil {
		return false
	}
	if cause == nil {
		cause = errByHand
	}
	e.cell.Lock()
	if e.decided {
		e.cell.Unlock()
		return false
	}
	now := e.cell.Flush()
	due := e.due(now)
	switch {
	case e.returned || e.callersToDecide(due, now):
		e.cell.Unlock()
		return false
	case due != 0:
		e.fire(e.newError(due, now, end{}), nil, false)
		return false
	}
	stop := e.errorAt(ErrAborted, now)
	stop.Cause = cause
	e.fire(stop, context.Canceled, false)
	return true
}

var errByHand = errors.New("stopped by hand")

// awaitCaller waits until the caller's context, whose deadline has passed, has ended, but no longer than callersDelay.
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

// callerDone reads how the caller's context has ended, and stops the execution unless its outcome is already decided.
// It may be called more than once. A context whose methods panic or call runtime.Goexit counts as cancelled.
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

// Err returns the error of the function's context. It reports the end of the caller's context at once, even before
// Run's goroutine has handled that end.
func (s *scope) Err() error {
	if err := s.inner.Err(); err != nil || !(*Execution)(s).callerEnded() {
		return err
	}
	(*Execution)(s).callerDone()
	<-s.inner.Done() // another goroutine may have decided the outcome and be about to cancel
	return s.inner.Err()
}

package timeout

import (
	"context"
	"errors"
	"reflect"
	"time"
)

// This file is about the end of the caller's context. That context may be anybody's: its methods may
// take locks, or not return. So nothing of it is called with a lock held, nor by a goroutine that has a
// limit to enforce. Everybody may look at its channel, which has been asked for at the start, and the
// goroutine that notices the end asks how the context has ended, before it locks the cell.

// Abort stops the execution, and every execution within it, as the end of the caller's context
// would. [Run] returns an [*Error] of [ErrAborted] with the cause, which is also the Cause of the
// function's context. If cause is nil, the cause says that the execution was stopped by hand.
//
// Abort reports whether this call has stopped the execution. It reports false if the execution has
// ended, if it was stopped before, or if a limit has fallen due.
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

// callerOver handles the end of ctx, the caller's context, on the goroutine of Run. It asks how ctx has
// ended on this goroutine if the methods of ctx are known to be quick.
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

// Err returns the error of the function's context. It shows the end of the caller's context at once, even if
// Run's goroutine has not noticed it.
func (s *scope) Err() error {
	if err := s.inner.Err(); err != nil || !(*Execution)(s).callerEnded() {
		return err
	}
	(*Execution)(s).callerDone()
	<-s.inner.Done() // another goroutine may have decided but not cancelled yet
	return s.inner.Err()
}

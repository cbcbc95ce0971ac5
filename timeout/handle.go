package timeout

import (
	"context"
	"errors"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// FromContext returns the innermost execution of ctx, or nil if there is none.
func FromContext(ctx context.Context) *Execution {
	e, _ := pulse.Of(ctx).Engine().(*engine)
	return (*Execution)(e)
}

// ID returns the number of the execution, which is unique in the process, never 0, and never
// changes. The executions that [Running] lists are numbered in the order in which they began.
func (e *Execution) ID() uint64 {
	if e == nil {
		return 0
	}
	return e.identity().id
}

// Parent returns the enclosing execution, or nil if there is none.
func (e *Execution) Parent() *Execution {
	if e == nil {
		return nil
	}
	return e.enclosing()
}

// Snapshot returns the present state of the execution, or, if it has ended, its last state. The
// Stack of the Snapshot is nil; [Execution.Stack] returns one.
func (e *Execution) Snapshot() Snapshot {
	if e == nil {
		return Snapshot{}
	}
	s := e.snapshot(nil)
	// The outcome is complete when the context is about to be cancelled, a moment after it was decided. Err of that
	// context would receive from its channel, which ends the process if the execution is in a bubble of
	// testing/synctest, and the caller, such as a page, is not.
	if s.State >= StateStopping && e.ended.Load() != nil {
		s.Err, s.Returned = e.outcome()
	}
	return s
}

// Stack returns the stacks of the function's goroutine and of those that it has started, in the
// form of [Error.Stack]. It returns nil if the function has returned or if no stack can be taken:
// taking one stops the world for a moment, so it is not done in a process with thousands of
// goroutines, nor for more than 1 % of the time. The stack may be as old as the last heartbeat.
func (e *Execution) Stack() []byte {
	if e == nil {
		return nil
	}
	stack := e.stack(&onRequest, budgetAfterGrace)
	e.cell.Lock()
	defer e.cell.Unlock()
	if e.over() {
		return nil // it is an old one
	}
	return stack
}

var errByHand = errors.New("stopped by hand")

// Abort stops the execution, and every execution within it, as the end of the caller's context
// would. [Run] returns an [*Error] of [KindAborted] with the cause, which is also the Cause of the
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
	stop := e.errorAt(KindAborted, now)
	stop.Cause = cause
	e.fire(stop, context.Canceled, false)
	return true
}

// String returns a short description. It keeps fmt from reading the fields of an execution in use.
func (e *Execution) String() string {
	if e == nil {
		return "no execution"
	}
	return "timeout.Run(" + e.tool + ")"
}

package timeout

import (
	"context"
	"errors"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// FromContext returns the innermost execution of ctx, or nil where there is none.
func FromContext(ctx context.Context) *Execution {
	e, _ := pulse.Of(ctx).Engine().(*engine)
	return (*Execution)(e)
}

// ID is unique in the process, and never 0. It stays as it is. Those of executions that are
// listed grow in the order in which they began.
func (e *Execution) ID() uint64 {
	if e == nil {
		return 0
	}
	return e.identity().id
}

// Parent returns the execution around this one, or nil where there is none.
func (e *Execution) Parent() *Execution {
	if e == nil {
		return nil
	}
	return e.around()
}

// Snapshot returns how the execution stands now. Of one that has ended it is how it stood
// then. It has no Stack, which [Execution.Stack] returns.
func (e *Execution) Snapshot() Snapshot {
	if e == nil {
		return Snapshot{}
	}
	s := e.snapshot(nil)
	// The outcome is complete when the context has been cancelled, a moment after it was
	// decided.
	if s.State >= StateStopping && e.inner.Err() != nil {
		s.Err, s.Returned = e.outcome()
	}
	return s
}

// Stack returns where the function is, and the goroutines that it has started, in the form
// of [Error.Stack]. It is nil where the function has returned, and where the stack cannot be
// had: that stops the world for a moment, and so is not done in a process of thousands of
// goroutines, and for at most 1 % of the time. It may be as old as the last heartbeat.
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

// Abort stops the execution as the end of the caller's context would: [Run] returns an
// [*Error] of [KindAborted] with the cause, which is also the Cause of the function's
// context. A nil cause is one that says that it was by hand. What runs within the execution
// is aborted with it.
//
// It reports whether this is what has stopped the execution: not if that has ended or been
// stopped before, or if a limit has fallen due.
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
	if due := e.due(now); due != 0 || e.caller.Err() != nil {
		e.fire(e.newError(due, now))
		return false
	}
	stop := e.errorAt(KindAborted, now)
	stop.Cause = cause
	e.byHand = true
	e.fire(stop)
	return true
}

// String keeps fmt from reading the fields of an execution that is in use.
func (e *Execution) String() string {
	if e == nil {
		return "no execution"
	}
	return "timeout.Run(" + e.tool + ")"
}

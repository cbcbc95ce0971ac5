package timeout

import (
	"runtime"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// conclude returns the results of Run, once the context is done. No code of the caller's is called here.
func (e *Execution) conclude() (returned bool, err error) {
	defer e.end() // also where the function's panic is passed on
	var out *Error
	if e.stop != nil {
		out = new(Error)
		*out = *e.stop // a copy: the function may be reading the other one
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

// end leaves nothing behind except an abandoned function, and hooks that do not return.
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
		c.told = true
	}
	e.settle()
	e.cell.Unlock()
}

// awaitReturn waits for the function until the grace is over. Where the function returns at the same
// moment, whichever locks the cell first decides: a function that has returned by the time that Run has
// the lock is not abandoned.
func (e *Execution) awaitReturn() bool {
	e.cell.Lock()
	if !e.returned {
		// The cancellation has woken a function that listens as well as this goroutine. Once
		// it has had its turn it has mostly returned, and needs no timer and no wait.
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
		e.settle() // before it can return
	case e.timer != nil:
		e.timer.Stop()
	}
	e.cell.Unlock()
	return returned
}

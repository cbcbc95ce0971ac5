package timeout

import (
	"runtime"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// conclude returns the results of Run, once the context is done.
func (e *Execution) conclude() (returned bool, err error) {
	defer e.end()
	var out *Error
	if e.stop != nil {
		out = new(Error)
		*out = *e.stop // which the function may be reading
	}
	reported := false
	defer func() {
		if !reported {
			_, _ = e.resolve(out) // a hook has called runtime.Goexit, and Finished is due all the same
		}
	}()
	e.reportStop(out)
	reported = true
	return e.resolve(out)
}

// reportStop makes the reports that come before the wait for the function.
func (e *Execution) reportStop(out *Error) {
	if e.stalls != nil {
		e.reportStall(e.stalls.unreported)
	}
	if e.observing != nil {
		e.reportExceeded()
	}
	if out == nil || !out.Timeout() {
		return
	}
	if e.command != nil && out.Stack == nil {
		out.Stack = e.command.Describe(true) // a return or a beat that came too late found the limit
	}
	if e.observing == nil && e.wants(hookExceeded) {
		e.exceeded(out)
	}
}

// resolve waits for the function, reports how it ended, and returns that.
func (e *Execution) resolve(out *Error) (returned bool, err error) {
	if out != nil && !e.awaitReturn() {
		e.abandon(out)
		return false, out
	}
	if out != nil {
		out.Err = e.err
	}
	if e.command != nil {
		return e.deliver(e.concludeCommand(out))
	}
	if out != nil && e.log != nil {
		e.logStop(out)
	}
	if e.observing != nil || e.wants(hookFinished) {
		e.finished(out)
	}
	if out != nil {
		return e.deliver(out)
	}
	return e.deliver(e.err)
}

// end leaves nothing behind except an abandoned function.
func (e *Execution) end() {
	e.cell.End()
	if c := e.closing.Load(); c != nil && c.entered.Load() {
		c.leave(e)
	}
	if c := e.command; c != nil {
		e.cell.Lock()
		c.told = true
		e.cell.Unlock()
	}
	if n := e.entry.Load(); n != nil && !e.abandoned {
		n.remove()
	}
}

// deliver returns err to the caller, unless the function has panicked and the caller wants
// that as a panic.
func (e *Execution) deliver(err error) (returned bool, _ error) {
	if e.panicked == nil {
		return true, err
	}
	if !e.recovers {
		e.relayPanic()
	}
	e.logPanic("tool panicked")
	return false, err
}

// awaitReturn waits for the function until the grace is over. The timer has no other work by
// then, since limits no longer matter. Rejected: a timer and a channel for the grace alone,
// which is much for each of a hundred thousand limits that fall due at once.
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
	// Run itself may be late, by the time that a hook took.
	left := max(e.limits.Grace, 0) - (now - e.cancelledAt)
	if !e.returned && (e.command != nil || left > 0) {
		wait := make(chan struct{})
		e.wait = wait
		if e.command == nil { // that of a command has no grace here
			e.armed = pulse.Forever
			e.armFor(now+min(left, pulse.Forever-now), now)
		}
		e.cell.Unlock()
		<-wait
		e.cell.Lock()
	}
	returned := e.returned
	switch {
	case !returned:
		e.abandoned = true
		abandonedNow.Add(1)
		n := e.identity()
		n.reported = make(chan struct{})
		n.insert() // before it can return, and be removed
	case e.timer != nil:
		e.timer.Stop()
	}
	e.cell.Unlock()
	return returned
}

// endGrace ends the wait for the function if the grace is over at now. A firing that was under
// way when the outcome was decided may come before that, and changes nothing. Where the function
// returns at the same moment, whichever locks the cell first ends the wait, and a function that
// has returned by the time that Run has the lock is not abandoned. The cell is locked.
func (e *Execution) endGrace(now time.Duration) {
	if e.wait != nil && e.command == nil && now >= e.armed {
		close(e.wait)
		e.wait = nil
	}
}

package timeout

import (
	"time"
)

// Snapshot returns the present state of the execution, or, if it has ended, its last state. The Stack of the Snapshot
// is nil; [Execution.Stack] takes one.
func (e *Execution) Snapshot() Snapshot {
	if e == nil {
		return Snapshot{}
	}
	s := e.snapshot(nil)
	// ended is set once the outcome is complete, just before the context is cancelled. Snapshot does not call Err of
	// the context, which would receive from its channel: if the execution runs in a bubble of testing/synctest, a
	// receive outside the bubble ends the process.
	if s.State >= StateStopping && e.ended.Load() != nil {
		s.Err, s.Returned = e.outcome()
	}
	return s
}

// snapshot returns the present state of the execution. err becomes the Err of the Snapshot.
func (e *Execution) snapshot(err error) Snapshot {
	e.cell.Lock()
	defer e.cell.Unlock()
	now, last := e.cell.Now(), e.cell.Last()
	if e.returned {
		now = e.returnedAt
	}
	if e.abandoned {
		last = e.cell.Newest()
	}
	f := e.figures(now)
	f.SinceBeat = max(now-last, 0)
	s := Snapshot{Figures: f, State: e.state(now), Err: err}
	e.complete(&s)
	return s
}

// snapshotOf returns the state of the execution when it was stopped with the outcome out. It leaves out the grace,
// which would lengthen the longest gap, from which users choose idle limits.
func (e *Execution) snapshotOf(out *Error, state State) Snapshot {
	e.cell.Lock()
	defer e.cell.Unlock()
	s := Snapshot{Figures: out.Figures, State: state, Err: out}
	e.complete(&s)
	return s
}

// complete sets the fields of s that snapshot and snapshotOf have in common. The cell is locked.
func (e *Execution) complete(s *Snapshot) {
	s.ID = e.identity().id
	if outer := e.enclosing(); outer != nil {
		s.Parent = outer.identity().id
	}
	s.Start, s.Stalled = e.cell.Start(), e.stalls.sum().total
	until := s.Elapsed
	if e.stop != nil {
		until = min(until, e.stop.Elapsed) // an execution does not begin to close after its stop
	}
	s.Closing = e.closingBy(until)
	_, s.Hold, s.Held = e.cell.Held(s.Elapsed)
	if e.observing != nil {
		s.ObserveOnly, s.Observed = true, e.observing.first
		if e.observing.idle { // the gap that exceeded the limit may have been found to be a stall since
			s.LongestGap = max(s.LongestGap, e.limits.Idle)
		}
	}
}

// state returns the State of the execution at now. The cell is locked.
func (e *Execution) state(now time.Duration) State {
	held, _, _ := e.cell.Held(now)
	last := e.cell.Last()
	stalled := e.overdue(now) > 0 // in a stall that has not been recorded yet
	switch {
	case e.over():
		return StateEnded
	case e.abandoned:
		return StateAbandoned
	case e.decided:
		return StateStopping
	case held:
		return StateHeld
	case !stalled && e.limits.Idle > 0 && now-last >= e.limits.Idle-e.limits.Idle/5:
		return StateNearIdle
	case stalled || e.stalls != nil && last == e.stalls.at:
		return StateStalled
	}
	return StateRunning
}

// over reports whether the function has returned and, for a command, whether the command's end has been reported. The
// cell is locked.
func (e *Execution) over() bool {
	return e.returned && (e.command == nil || e.command.reported)
}

// outcome returns the error of an execution whose outcome has been decided, or nil if a command's exit code has not
// been read yet. returned is the Returned of a Snapshot.
func (e *Execution) outcome() (err error, returned bool) {
	if c := e.command; c != nil {
		e.cell.Lock()
		defer e.cell.Unlock()
		if c.concluded {
			return c.final, c.returned
		}
		if e.stop == nil {
			return nil, false
		}
	}
	if e.stop != nil {
		return e.stop, false
	}
	return e.err, e.normal
}

// closingBy reports whether the execution is closing at the instant now.
func (e *Execution) closingBy(now time.Duration) bool {
	if now >= e.closesAt() {
		return true
	}
	if c := e.closing.Load(); c != nil {
		c.mu.Lock()
		over := c.over && c.at <= now
		c.mu.Unlock()
		if over {
			return true
		}
	}
	outer := e.enclosing()
	switch {
	case outer == nil:
		return false
	case outer.cell.Clock() != e.cell.Clock(): // instants of two clocks cannot be compared
		return outer.closingBy(outer.cell.Now())
	}
	return outer.closingBy(now + e.cell.Start().Sub(outer.cell.Start()))
}

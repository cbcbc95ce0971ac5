package timeout

import (
	"time"
)

// This file distinguishes the silence of a tool from time in which the process could not run: the process was stopped
// (SIGSTOP, a debugger), its machine paused, or its container starved (SPEC 3.16). There must be two signs of a
// stall: the execution's own timer is overdue, and meanwhile no timer of any execution in this process fired. A timer
// that is overdue while others fire is delayed by a backlog, for example of a hundred thousand limits that fall due
// at once. If that counted as a stall, each of these executions would get another idle limit, and all would fall due
// together again.
//
// The signs are checked only when an event is late: in the timer's function, and by a beat, a hold or a return after
// the limit, whichever runs first once the process runs again. An event in time costs nothing.
//
// If a process was stopped for less than the time until its timer was due, there is no sign of the stall. It then
// loses that part of one idle limit, and no more.

const (
	// A timer that is overdue by no more than a quarter of the idle limit, or maxSlack if that is less, is no sign of
	// a stall.
	maxSlack = time.Second
)

func (s *stalls) sum() stalls {
	if s == nil {
		return stalls{}
	}
	return *s
}

// overdue returns the time for which the process could not run while the timer was overdue at now, or 0 if there was
// no stall. The cell is locked.
//
// On a clock given by WithClock, a late timer is no sign of a stall: the goroutine that moves the clock was faster.
// In a bubble of testing/synctest, no timer is ever late.
func (e *Execution) overdue(now time.Duration) time.Duration {
	slack := min(max(e.limits.Idle/4, minSlack), maxSlack)
	if e.decided || e.limits.Idle <= 0 || e.cell.Clock() != nil || now-e.armed <= slack {
		return 0
	}
	start := e.cell.Start().Sub(epoch)
	if pause := fired.longestPause(start+e.armed, start+now); pause > slack {
		return pause
	}
	return 0
}

// noteFiring records that the timer fires at now, unless it is exactly in time: it is then in a bubble of
// testing/synctest, whose time says nothing about the process. The cell is locked.
func (e *Execution) noteFiring(now time.Duration) {
	if e.cell.Clock() == nil && now > e.armed {
		fired.note(e.cell.Start().Sub(epoch) + now)
	}
}

// stalledUntil reports whether the process could not run when the idle limit fell due at or before now. If so, it
// records the stall and restarts the idle check. The cell is locked.
func (e *Execution) stalledUntil(now time.Duration) bool {
	overdue := e.overdue(now)
	if overdue == 0 {
		return false
	}
	s := e.stalls.sum()
	e.stalls = &stalls{s.count + 1, s.total + overdue, now, overdue}
	e.armed = now // so that the timer's function, about to run, does not find the same stall
	e.cell.Restart(now)
	return true
}

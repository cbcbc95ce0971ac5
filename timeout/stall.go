package timeout

import (
	"time"
)

// This file tells the silence of a tool from time in which nobody could run: the process
// was stopped (SIGSTOP, a debugger), its machine paused, its container starved (SPEC
// 3.16). The evidence is twofold: the execution's own timer is overdue, and meanwhile no
// timer of any execution in this process fired. A timer that is overdue while others fire
// waits in a backlog of the process's own, such as that of a hundred thousand limits which
// fall due at once. If that counted as a stall, each of them would get another idle limit,
// and fall due at once with all others again.
//
// The evidence is looked at where something is late already, in the timer's function, and by a
// beat, a hold or a return after the limit, whichever of them runs first when the process runs
// again. An event that is in time reads nothing.
//
// A process that was stopped for less than what was left until its timer was due leaves
// no such evidence. It has lost part of one idle limit, and no more.

const (
	// A timer that is overdue by less than a quarter of the idle limit, at most maxSlack,
	// is just late.
	maxSlack = time.Second
)

func (s *stalls) sum() stalls {
	if s == nil {
		return stalls{}
	}
	return *s
}

// overdue returns for how long the process could not run while the timer was overdue at now, or 0 if
// there is no evidence of a stall. The cell is locked.
//
// On a clock that was given, a late timer is no evidence: the goroutine that moves the clock was
// quicker. In a bubble of testing/synctest a timer is never late.
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

// noteFiring records that the timer fires at now. It leaves out a timer that is not late at all: such
// a timer is in a bubble of testing/synctest, whose time says nothing about the process. The cell is locked.
func (e *Execution) noteFiring(now time.Duration) {
	if e.cell.Clock() == nil && now > e.armed {
		fired.note(e.cell.Start().Sub(epoch) + now)
	}
}

// stalledUntil reports whether the process could not run when the idle limit fell due at or before
// now. If so, the idle check has started afresh. The cell is locked.
func (e *Execution) stalledUntil(now time.Duration) bool {
	overdue := e.overdue(now)
	if overdue == 0 {
		return false
	}
	s := e.stalls.sum()
	e.stalls = &stalls{s.count + 1, s.total + overdue, now, overdue}
	e.armed = now // the timer's function, about to run, must not find the same stall
	e.cell.Restart(now)
	return true
}

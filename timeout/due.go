package timeout

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file tells what has fallen due, and what will be next. The cell is locked everywhere here.

// due returns the limit that has fallen due, or 0. The total goes first (SPEC 3.4), and
// counts time in which the process could not run (SPEC 3.16); idle does not.
func (e *Execution) due(now time.Duration) Kind {
	e.stalledUntil(now)
	if e.observing != nil {
		return e.observeDue(now)
	}
	switch {
	case e.limits.Total > 0 && now >= e.limits.Total:
		return ErrTotal
	case e.limits.Idle > 0:
		if e.idleDue(now) {
			return ErrIdle
		}
	}
	return 0
}

// idleDue reports whether the idle limit has fallen due beyond doubt. It returns false while a probe
// still has to look for signs of life.
func (e *Execution) idleDue(now time.Duration) bool {
	at := e.cell.IdleDue()
	return now >= at && at != pulse.Forever && !e.cell.Doubt(at, now)
}

// observeDue is due for an execution whose limits are only observed. It notes the exceeded limits, and returns
// ErrTotal if the caller's deadline has passed, or 0.
func (e *Execution) observeDue(now time.Duration) Kind {
	o := e.observing
	if o.cap > 0 && now >= o.cap {
		return ErrTotal
	}
	if !o.total && e.limits.Total > 0 && now >= e.limits.Total {
		o.total = true
		o.note(e.errorAt(ErrTotal, now))
	}
	if !o.idle && e.idleDue(now) {
		o.idle = true
		o.note(e.errorAt(ErrIdle, now))
	}
	return 0
}

func (o *observation) note(out *Error) {
	if o.first == nil {
		o.first = out
	}
	o.unreported = append(o.unreported, out)
}

// next returns the instant at which the next thing can happen, or Forever if nothing can. The cell is locked, as
// everywhere here, and no burst is on: one that begins after this cannot be overlooked,
// because it takes the lock to set the timer for its own end.
func (e *Execution) next() time.Duration {
	if e.observing != nil {
		return e.nextToObserve()
	}
	next := min(e.cell.IdleJudged(), e.warningDue(e.cell.IdleDue()))
	if e.limits.Total > 0 {
		next = min(next, e.limits.Total)
	}
	return min(next, e.closingDue())
}

// nextToObserve is next for an execution that is only observed.
func (e *Execution) nextToObserve() time.Duration {
	o, next := e.observing, pulse.Forever
	if o.cap > 0 {
		next = o.cap
	}
	if !o.total && e.limits.Total > 0 {
		next = min(next, e.limits.Total)
	}
	next = min(next, e.warningDue(e.cell.IdleDue()), e.closingDue())
	idle := e.cell.IdleJudged()
	if now := e.cell.Now(); o.idle && idle <= now {
		// Nothing is left to be judged. But without a timer, a stall would be taken for a
		// gap. So the timer is set for when the gap has doubled.
		idle = now + (now - e.cell.Last())
	}
	return min(next, idle)
}

// warningDue returns the instant at which 80 % of the idle limit will have passed, or Forever if
// no hook and no logger wants to know, or the hook was called already.
func (e *Execution) warningDue(idleDue time.Duration) time.Duration {
	if idleDue == pulse.Forever || e.warnedFor == idleDue-e.limits.Idle || (e.log == nil && !e.hasHook(hookNearIdle)) {
		return pulse.Forever
	}
	return idleDue - e.limits.Idle/5
}

// closingDue returns the instant at which the timer has to fire for the reserve, or Forever if it need not.
// The cell is locked.
func (e *Execution) closingDue() time.Duration {
	if !e.awaitsReserve {
		return pulse.Forever
	}
	return e.closesAt()
}

// closesAt returns the instant at which the reserve is reached, or Forever if there is no reserve.
func (e *Execution) closesAt() time.Duration {
	if total := e.cap(); e.limits.Reserve > 0 && total > 0 {
		return max(total-e.limits.Reserve, 0)
	}
	return pulse.Forever
}

// UntilClosing returns the time that is left until the reserve is reached, for package progress. ok is false if
// there is no reserve or it has been reached.
func (w *engine) UntilClosing() (left time.Duration, ok bool) {
	e := (*Execution)(w)
	at := e.closesAt()
	left = at - e.cell.Now()
	return left, at != pulse.Forever && left > 0
}

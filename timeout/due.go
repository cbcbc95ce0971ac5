package timeout

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file determines which limit has fallen due, and when the next one may. The cell is locked unless a comment
// says otherwise.

// due returns the limit that has fallen due at now, or 0. If both have, it returns the total (SPEC 3.4). Time in
// which the process could not run counts for the total, and not for the idle limit (SPEC 3.16).
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

// idleDue reports whether the idle limit has fallen due at now. It returns false while a probe still looks for signs
// of life; see pulse.Probe.
func (e *Execution) idleDue(now time.Duration) bool {
	at := e.cell.IdleDue()
	return now >= at && at != pulse.Forever && !e.cell.Doubt(at, now)
}

// observeDue replaces due if the limits are only observed. It records the exceeded limits, and returns ErrTotal if
// the deadline of the caller or of TOOL_DEADLINE has passed, or else 0.
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

// next returns the instant at which the timer must fire next, or Forever if it need not fire. No burst of beats is in
// progress: one that begins later sets the timer for its own end, under the lock.
func (e *Execution) next() time.Duration {
	next := min(e.warningDue(e.cell.IdleDue()), e.closingDue())
	idle, total := e.cell.IdleJudged(), e.limits.Total
	if o := e.observing; o != nil {
		if o.cap > 0 {
			next = min(next, o.cap)
		}
		if o.total {
			total = 0
		}
		if now := e.cell.Now(); o.idle && idle <= now {
			// The idle limit has been exceeded and recorded. But the timer must keep firing: without it, a stall of the
			// process would be taken for a gap of the tool. It fires when the gap has doubled.
			idle = now + (now - e.cell.Last())
		}
	}
	if total > 0 {
		next = min(next, total)
	}
	return min(next, idle)
}

// warningDue returns the instant at which 80 % of the idle limit will have passed. It returns Forever if there is
// neither a NearIdle hook nor a logger, or if NearIdle was already reported for this gap.
func (e *Execution) warningDue(idleDue time.Duration) time.Duration {
	if idleDue == pulse.Forever || e.warnedFor == idleDue-e.limits.Idle || (e.log == nil && !e.hasHook(hookNearIdle)) {
		return pulse.Forever
	}
	return idleDue - e.limits.Idle/5
}

// closingDue returns the instant at which the timer must fire for the reserve, or Forever if it need not.
func (e *Execution) closingDue() time.Duration {
	if !e.awaitsReserve {
		return pulse.Forever
	}
	return e.closesAt()
}

// closesAt returns the instant at which the reserve is reached, or Forever if there is no reserve or no total. It
// needs no lock.
func (e *Execution) closesAt() time.Duration {
	if total := e.cap(); e.limits.Reserve > 0 && total > 0 {
		return max(total-e.limits.Reserve, 0)
	}
	return pulse.Forever
}

// UntilClosing returns the time left until the reserve is reached. ok is false if there is no reserve or no total, or
// if the reserve has been reached. It needs no lock.
func (w *engine) UntilClosing() (left time.Duration, ok bool) {
	e := (*Execution)(w)
	at := e.closesAt()
	left = at - e.cell.Now()
	return left, at != pulse.Forever && left > 0
}

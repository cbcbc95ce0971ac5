package timeout

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is the rule of what falls due when, and of which limit wins a tie.

// due returns the limit that has fallen due, or 0. The total goes first (SPEC 3.4), and
// counts time in which nobody could run (SPEC 3.16); idle does not.
func (e *Execution) due(now time.Duration) Kind {
	e.stalledUntil(now)
	if e.observing != nil {
		return e.observeDue(now)
	}
	switch {
	case e.limits.Total > 0 && now >= e.limits.Total:
		return KindTotal
	case e.limits.Idle > 0:
		if e.idleDue(now) {
			return KindIdle
		}
	}
	return 0
}

// idleDue reports whether the idle limit has fallen due and nothing has to be looked at
// before that can be said.
func (e *Execution) idleDue(now time.Duration) bool {
	at := e.cell.IdleDue()
	return now >= at && at != pulse.Forever && !e.cell.Doubt(at, now)
}

package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is the one timer of an execution. It is set for the earliest thing that
// can happen. A heartbeat moves it on where at most half the idle limit is left until then, so
// most beats touch no timer. Where beats are farther apart, it fires before a limit is due,
// looks, and is set again. A look takes a goroutine, and so costs more than the few resets
// that it would save. Rejected: a timer that no beat moves, which costs more than one that
// each beat resets if there are only four beats in an idle limit; a timer per limit, which
// costs more at every rate of beats; polling, which is late. Once the outcome is decided
// it is the timer of the grace.

func (w *engine) Wake(d time.Duration) {
	e := (*Execution)(w)
	if e.decided || e.returned {
		return // nothing is left to judge, so nothing is gained by exact stamps
	}
	now := e.cell.Now()
	e.armFor(now+d, now)
}

func (w *engine) Rearm() {
	if e := (*Execution)(w); !e.decided && !e.returned {
		now := e.cell.Now()
		e.armFor(e.next(), now)
	}
}

// Renew leaves a timer that is overdue alone: its function is about to run, and may find a stall.
func (w *engine) Renew(now time.Duration) {
	e := (*Execution)(w)
	e.cell.RenewFrom(pulse.Forever)
	if e.decided || e.returned || now >= e.armed {
		return
	}
	if next := e.next(); next > e.armed {
		e.arm(next, now)
	}
}

func (w *engine) Stopped(now time.Duration) bool {
	e := (*Execution)(w)
	if e.decided {
		return e.stop != nil
	}
	if o := e.observing; o != nil {
		return (o.cap > 0 && now >= o.cap) || e.callerEnded()
	}
	return e.due(now) != 0 || e.callerEnded()
}

// armFor makes the timer fire at the instant at, or before it.
func (e *Execution) armFor(at, now time.Duration) {
	at = max(at, now) // else the timer would look overdue
	if at >= e.armed {
		return
	}
	e.arm(at, now)
}

// arm sets the timer for the instant at.
func (e *Execution) arm(at, now time.Duration) {
	e.setArmed(at)
	if e.timer == nil {
		e.timer = pulse.AfterFunc(e.cell.Clock(), at-now, e.onTimer)
		return
	}
	e.timer.Reset(at - now)
}

func (e *Execution) setArmed(at time.Duration) {
	e.armed = at
	e.cell.RenewFrom(at - e.limits.Idle/2)
}

// due returns the limit that has fallen due, or 0. The total goes first (SPEC 3.4), and
// counts time in which the process could not run (SPEC 3.16); idle does not.
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

// warningDue returns the instant at which 80 % of the idle limit will have passed, or Forever if
// no hook and no logger wants to know, or the hook was called already.
func (e *Execution) warningDue(idleDue time.Duration) time.Duration {
	if idleDue == pulse.Forever || e.warnedFor == idleDue-e.limits.Idle || (e.log == nil && !e.wants(hookNearIdle)) {
		return pulse.Forever
	}
	return idleDue - e.limits.Idle/5
}

// onTimer looks whether a limit has fallen due. Its frame is small: a few hundred bytes more,
// and the stack of each goroutine that fires a limit has to grow.
func (e *Execution) onTimer() {
	e.cell.Lock()
	if e.decided {
		now := e.cell.Now()
		e.noteFiring(now)
		if now >= e.armed {
			e.wake() // a firing that was under way when it was set changes nothing
		}
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	e.noteFiring(now) // before it is judged, so that a pause which it ends is on record
	if e.returned {
		if now >= e.armed {
			e.decideForCaller()
		} else {
			e.cell.Unlock() // it was set before
		}
		return
	}
	if kind := e.due(now); kind != 0 {
		if e.callersToDecide(kind, now) {
			e.cell.Unlock()
			return
		}
		e.fire(e.newError(kind, now, end{}), nil, true)
		return
	}
	e.cell.AskProbes(now)
	e.armed = pulse.Forever
	var stall time.Duration
	if s := e.stalls.sum(); s.unreported > 0 {
		stall = s.unreported
		e.stalls = &stalls{s.count, s.total, s.at, 0}
	}
	idle := e.cell.IdleDue() // once: a beat may come at any time
	warn := now >= e.warningDue(idle)
	if warn {
		e.warnedFor = idle - e.limits.Idle
	}
	closing := now >= e.closingDue()
	if closing {
		e.awaitsReserve = false
	}
	e.armFor(e.next(), now)
	e.cell.Unlock()
	if closing {
		e.closeNow()
	}
	if e.reports != nil && (stall > 0 || e.observing != nil || warn) {
		e.reportMoment(stall, warn)
	}
}

// reportMoment reports what the timer has found that stops nothing. It must not be inlined: see onTimer.
//
//go:noinline
func (e *Execution) reportMoment(stall time.Duration, nearIdle bool) {
	mine := e.reportStall(stall)
	if e.observing != nil {
		mine = e.reportExceeded() || mine
	}
	if nearIdle && !e.crowded() {
		s := e.snapshot(nil)
		mine = e.postHook(hookNearIdle, &s) || mine
		mine = e.postLog(slog.LevelWarn, "tool is close to its idle limit", slog.Any("execution", s)) || mine
	}
	e.deliver(mine, true)
}

// fire stops the execution. err is the Err of its context after an abort. If here is set, this goroutine waits
// for the hooks. The cell is locked, and unlocked on return.
func (e *Execution) fire(stop *Error, err error, here bool) {
	e.decide(stop)
	e.cell.Unlock()
	if e.showsStack(stop.Kind) {
		// Before the cancellation: afterwards a function that answers is elsewhere.
		stop.Stack = e.stack(&sampler, budgetBeforeCancel)
		e.cancelledAt = e.cell.Now()
	}
	mine := e.reports != nil && e.reportEnd()
	e.cancel(err)
	e.deliver(mine, here)
}

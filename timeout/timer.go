package timeout

import (
	"context"
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
		return // nothing is left to judge, so stamps need not be exact
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

// Excuses reports whether a beat or a hold at now counts although the limit has fallen due. The
// cell is locked.
func (w *engine) Excuses(now time.Duration) bool {
	e := (*Execution)(w)
	if e.stalledUntil(now) {
		return true
	}
	if !e.decided && e.cell.Doubt(e.cell.IdleDue(), now) {
		e.cell.Admit(now)
		if !e.returned {
			e.armFor(e.next(), now) // a doubt may outlast the limit, and the timer is set for its end
		}
		return true
	}
	return e.observing != nil && e.admit(now)
}

// admit counts a beat or a hold that came after the limit. It returns false, and counts nothing, if the function has
// returned, was stopped or must be stopped. The timer's function, which is about to run, reports the exceeded limit.
func (e *Execution) admit(now time.Duration) bool {
	if e.decided || e.returned || e.observeDue(now) != 0 {
		return false
	}
	e.cell.Admit(now)
	e.armFor(e.next(), now)
	return true
}

// armFor makes the timer fire at the instant at or earlier.
func (e *Execution) armFor(at, now time.Duration) {
	at = max(at, now) // otherwise the timer would look overdue
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

// onTimer looks whether a limit has fallen due. Its frame is small: a few hundred bytes more,
// and the stack of each goroutine that fires a limit has to grow.
func (e *Execution) onTimer() {
	e.cell.Lock()
	if e.decided {
		now := e.cell.Now()
		e.noteFiring(now)
		if now >= e.armed {
			e.wake() // a firing that was under way when the timer was set changes nothing
		}
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	e.noteFiring(now) // before judging, so that the pause that this firing ends is on record
	if e.returned {
		if now >= e.armed {
			e.decideForCaller()
		} else {
			e.cell.Unlock() // the timer was set before
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

// fire stops the execution. err is the Err of its context after an abort. If here is true, this goroutine waits
// for the hooks. The cell is locked, and unlocked on return.
func (e *Execution) fire(stop *Error, err error, here bool) {
	e.decide(stop)
	e.cell.Unlock()
	if e.showsStack(stop.Kind) {
		// Before the cancellation, which makes a function move on.
		stop.Stack = e.stack(&sampler, budgetBeforeCancel)
		e.cancelledAt = e.cell.Now()
	}
	mine := e.reports != nil && e.reportEnd()
	e.cancel(err)
	e.deliver(mine, here)
}

// waitUntil waits until wake is called or the instant at has come; Forever never comes. The cell is locked,
// and unlocked while waitUntil waits. waitUntil uses the timer, which the limits no longer need by then.
// Rejected: a timer and a channel for each of these waits, which is too much for a hundred thousand limits
// that fall due at once.
func (e *Execution) waitUntil(at, now time.Duration) {
	wait := make(chan struct{})
	e.wait = wait
	if at != pulse.Forever {
		e.arm(at, now)
	}
	e.cell.Unlock()
	<-wait
	e.cell.Lock()
}

// callersDelay is the longest time for which an outcome waits for the goroutine that asks how the caller's context
// has ended: after a passed deadline, or an end that came before the function's return. Two timers of the same instant
// are often a little apart, and farther on a busy machine. Only a context that shows a deadline
// and does not end by it makes a stop as late as this.
const callersDelay = 100 * time.Millisecond

// callersToDecide reports whether callerDone must decide the outcome, because the caller's context has ended
// or is about to. kind is the limit that has fallen due at now, or 0. callersToDecide sets the timer for the
// case that callerDone is never called. The cell is locked.
//
// On a clock that was given, the caller's deadline may be on another clock, so nothing waits for that deadline.
func (e *Execution) callersToDecide(kind Kind, now time.Duration) bool {
	switch {
	case kind == 0:
		if !e.callerEnded() {
			return false
		}
		if e.returned {
			e.arm(now+callersDelay, now)
		}
		return true
	case kind != ErrTotal || e.cell.Clock() != nil || !e.totalOf().borrowed:
		return false
	}
	until := e.cap() + callersDelay
	if now >= until {
		return false
	}
	e.arm(until, now)
	return true
}

// decideForCaller decides the outcome of a function that returned after the end or the deadline of the
// caller's context, if callerDone has not found out in time how that context ended. The cell is locked,
// and unlocked on return.
func (e *Execution) decideForCaller() {
	by := end{context.Canceled, context.Canceled}
	e.fire(e.newError(e.due(e.returnedAt), e.returnedAt, by), by.err, true)
}

// callerEnded reports whether the caller's context has ended. The context of an enclosing execution counts
// as ended once that of its own caller has, even before the enclosing execution notices. callerEnded may be
// called with the cell locked.
func (e *Execution) callerEnded() bool {
	for {
		select {
		case <-e.callersEnd:
			return true
		default:
		}
		outer := e.enclosing()
		if outer == nil || outer.inner.Done() != e.callersEnd {
			return false
		}
		e = outer
	}
}

package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An execution has one timer, set for the earliest instant at which the execution must do something. A heartbeat
// postpones the timer only if at most half of the idle limit is left until it fires, so most beats touch no timer.
// With rarer beats the timer fires before a limit is due, finds none due, and is set again. Such a firing starts a
// goroutine, which costs more than the resets of the timer that it saves; hence the half. After the outcome the timer
// bounds the grace and the wait for hooks.
//
// Rejected: a timer that no beat postpones, which costs more than a reset at each beat if there are four beats per
// idle limit; a timer for each limit, which costs more at any rate of beats; polling, which is late.

func (w *engine) Wake(d time.Duration) {
	e := (*Execution)(w)
	if e.decided || e.returned {
		return // no limit can fire any more, so the time of a beat need not be exact
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

// Renew postpones the timer after a beat at now. It leaves an overdue timer as it is: its function is about to run,
// and may find a stall.
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

// Excuses reports whether a beat or a hold at now counts although the idle limit has fallen due. The cell is locked.
func (w *engine) Excuses(now time.Duration) bool {
	e := (*Execution)(w)
	if e.stalledUntil(now) {
		return true
	}
	if !e.decided && e.cell.Doubt(e.cell.IdleDue(), now) {
		e.cell.Admit(now)
		if !e.returned {
			e.armFor(e.next(), now) // the timer may be set for the end of the doubt, later than the new limit
		}
		return true
	}
	return e.observing != nil && e.admit(now)
}

// admit counts a beat or a hold after an idle limit that is only observed, and reports whether it did: it counts
// nothing if the function has returned, was stopped or must be stopped. The timer's function, which is about to run,
// reports the exceeded limit.
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

// onTimer is the timer's function: it stops the execution if a limit has fallen due, and otherwise sets the timer
// again. Its stack frame must stay small: with a few hundred bytes more, the stack of each goroutine that fires a
// limit would have to grow.
func (e *Execution) onTimer() {
	e.cell.Lock()
	if e.decided {
		now := e.cell.Now()
		e.noteFiring(now)
		if now >= e.armed {
			e.wake() // otherwise the timer fired before it was set for the instant that Run waits for
		}
		e.cell.Unlock()
		return
	}
	now := e.cell.Flush()
	e.noteFiring(now) // before due, which needs the pause that this firing ends
	if e.returned {
		if now >= e.armed {
			e.decideForCaller()
		} else {
			e.cell.Unlock() // this firing is older than the last setting of the timer
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
	idle := e.cell.IdleDue() // read once, because a beat may change it at any time
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

// fire stops the execution with the outcome stop. err is the Err of its context after an abort. If here is true, the
// calling goroutine delivers the reports, and otherwise a new one. The cell is locked when fire is called, and
// unlocked on return.
func (e *Execution) fire(stop *Error, err error, here bool) {
	e.decide(stop)
	e.cell.Unlock()
	if e.showsStack(stop.Kind) {
		// Taken before the cancellation: the stack must show where the function is stuck.
		stop.Stack = e.stack(&sampler, budgetBeforeCancel)
		e.cancelledAt = e.cell.Now()
	}
	mine := e.reports != nil && e.reportEnd()
	e.cancel(err)
	e.deliver(mine, here)
}

// waitUntil waits until wake is called or the instant at has come. If at is Forever, it waits for wake alone. The
// cell is locked when waitUntil is called and on return, but not while it waits. waitUntil uses the execution's
// timer, which no limit needs after the outcome. Rejected: a new timer and channel for each wait, which costs too
// much when a hundred thousand limits fall due at once.
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

// callersDelay is the longest time for which an outcome waits for callerDone, which reads how the caller's context
// has ended. The time starts at the caller's deadline or, if the context ended before the function returned, at the
// return. Two timers set for one instant often fire a little apart, and farther on a busy machine. Only a context
// that reports a deadline and does not end by then delays a stop for this long.
const callersDelay = 100 * time.Millisecond

// callersToDecide reports whether callerDone must decide the outcome, because the caller's context has ended or is
// about to. kind is the limit that has fallen due at now, or 0. callersToDecide sets the timer in case callerDone
// does not decide in time. The cell is locked.
//
// Under WithClock, the caller's deadline may be on another clock, and no outcome waits for it.
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

// decideForCaller decides the outcome of a function that returned after the end or the deadline of the caller's
// context, if callerDone has not done so within callersDelay. The cell is locked when decideForCaller is called, and
// unlocked on return.
func (e *Execution) decideForCaller() {
	by := end{context.Canceled, context.Canceled}
	e.fire(e.newError(e.due(e.returnedAt), e.returnedAt, by), by.err, true)
}

// callerEnded reports whether the caller's context has ended. If that is the context of an enclosing execution, it
// counts as ended once the context of that execution's own caller has, even before the enclosing execution notices.
// callerEnded may be called with the cell locked.
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

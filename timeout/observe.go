package timeout

import (
	"log/slog"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is for executions whose limits are judged and reported, and not enforced
// (SPEC 3.18).

// WithObserveOnly checks the limits but enforces none. It is for tools whose heartbeats are not yet
// known. When a limit would have fired, at most once for each of the two, the execution logs a line
// and calls the hook Exceeded, both with the [*Error] that Run would have returned. At the end it
// logs the idle limit, or the total, that would have sufficed. Each limit is judged by itself,
// whether or not the other has been exceeded.
//
// The limits neither cancel the function's context nor show as its Deadline. The end of the caller's
// context, even by its deadline, stops the function as always, with a grace, and so does
// [Execution.Abort]. The limits of nested executions are enforced.
//
// All values that WithObserveOnly returns are equal and differ from every other Option, so == finds
// one among options.
func WithObserveOnly() Setting { return observeOnly{} }

type observeOnly struct{}

func (observeOnly) apply(s *settings) { s.observe = true }
func (observeOnly) setting()          {}

// An observation is what has been observed. It is guarded by the cell's lock.
type observation struct {
	reporting sync.Mutex // held while something is reported, and taken before the cell's

	cap         time.Duration // what was left of the caller's deadline, which is enforced; 0 is none
	idle, total bool          // whether they have been exceeded
	first       *Error
	unreported  []*Error
}

// observeDue is due for an execution that is only observed.
func (e *Execution) observeDue(now time.Duration) Kind {
	o := e.observing
	if o.cap > 0 && now >= o.cap {
		return KindTotal
	}
	if !o.total && e.limits.Total > 0 && now >= e.limits.Total {
		o.total = true
		o.note(e.errorAt(KindTotal, now))
	}
	if !o.idle && e.idleDue(now) {
		o.idle = true
		o.note(e.errorAt(KindIdle, now))
	}
	return 0
}

func (o *observation) note(out *Error) {
	if o.first == nil {
		o.first = out
	}
	o.unreported = append(o.unreported, out)
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
		// Nothing is left to be judged. But a timer that is not set finds no stall, which
		// would then be taken for a gap. So it is set for when the gap has doubled.
		idle = now + (now - e.cell.Last())
	}
	return min(next, idle)
}

// admit counts a beat or a hold that came after the limit, and reports false if it cannot: the function has
// returned, or was or must be stopped. The timer's function, which is about to run, reports what it exceeds.
func (e *Execution) admit(now time.Duration) bool {
	if e.decided || e.returned || e.observeDue(now) != 0 {
		return false
	}
	e.cell.Admit(now)
	e.armFor(e.next(), now)
	return true
}

// reportExceeded reports what has been exceeded and not been reported yet. The caller holds no lock.
// At the end it waits for any other goroutine that reports, so that this goes before Finished: for its
// stack, and not for hooks.
func (e *Execution) reportExceeded() (mine bool) {
	o := e.observing
	o.reporting.Lock()
	defer o.reporting.Unlock()
	e.cell.Lock()
	all := o.unreported
	o.unreported = nil
	e.cell.Unlock()
	for _, seen := range all {
		out := new(Error)
		*out = *seen // a copy: the snapshots have the other one
		if e.showsStack(out.Kind) {
			out.Stack = e.stack(&sampler, budgetBeforeCancel)
		}
		attrs := []slog.Attr{slog.Any("error", out)}
		if out.Stack != nil {
			attrs = append(attrs, slog.String("stack", string(out.Stack)))
		}
		mine = e.postLog(slog.LevelWarn, "tool would have been stopped: its limits are only observed", attrs...) || mine
		s := e.snapshot(out)
		s.Stack = out.Stack
		mine = e.postHook(hookExceeded, &s) || mine
	}
	return mine
}

// logObserved logs, at the end, the limits that would have sufficed.
func (e *Execution) logObserved(s *Snapshot) (mine bool) {
	if s.Observed == nil {
		return false
	}
	attrs := []slog.Attr{
		slog.Any("observed", s.Observed),
		slog.Duration("elapsed", human.Duration(s.Elapsed)),
		slog.Duration("longest_gap", human.Duration(s.LongestGap)),
		errorAttr(s.Err),
	}
	if e.observing.idle {
		attrs = append(attrs, slog.Duration("idle_needed", above(s.LongestGap)))
	}
	if e.observing.total {
		attrs = append(attrs, slog.Duration("total_needed", above(s.Elapsed)))
	}
	return e.postLog(slog.LevelWarn, "tool that would have been stopped has ended", attrs...)
}

// above returns the smallest limit, in whole seconds, or in milliseconds below one, that does not
// fire after d.
func above(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d/unit + 1) * unit
}

package timeout

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Execution is one call of [Run] or [Do]. [FromContext] returns the execution that a function
// runs in, and [Running] lists the executions in progress. The methods of a nil *Execution return
// zero values. An Execution must not be copied.
//
// An Execution may be used after it has ended, but it keeps everything that its function refers to
// in memory. To remember an execution, keep its [Snapshot].
type Execution struct {
	// It is one object with its function's context and its heartbeat, so that a run costs few
	// allocations and none of them can outlive the others: scope is that context, root what the
	// context is made from, and engine judges the heartbeat.
	//
	// The outcome is decided under the cell's lock by the first to set decided: the function that
	// returns, the limit that fires or the end of the caller's context. The same goroutine then
	// cancels the context, so the error, the context's Cause, the hooks and the log report one
	// outcome.

	// The heartbeat, first, so that a beat reads few cache lines. Its lock guards what follows.
	cell  pulse.Cell
	timer pulse.Timer
	armed time.Duration // when the timer fires next; Forever where it is not set
	wait  chan struct{} // closed to make Run, which waits for something, look again
	// decided says that no limit may fire any more: one has, or the function has
	// returned, or the caller's end was seen.
	decided       bool
	returned      bool
	abandoned     bool
	begun         bool          // the function has been called
	leaves        bool          // it has left something behind: see settle
	borrowed      bool          // the total that is enforced is what was left of the caller's deadline
	awaitsReserve bool          // the timer fires for the reserve
	normal        bool          // the function has neither panicked nor called runtime.Goexit; it is set as err is
	stalls        *stalls       // nil where there were none
	warnedFor     time.Duration // the beat for whose gap NearIdle was called last, -1 for none
	cancelledAt   time.Duration // the instant at which the grace begins
	returnedAt    time.Duration

	inner  context.Context // the function's, without what scope adds
	caller context.Context
	// callersEnd is the Done of the caller.
	callersEnd <-chan struct{}
	propagate  func() // cancels inner as root says
	ended      atomic.Pointer[ending]

	settings
	fn        func(context.Context) error
	reports   *reports                // nil without hooks and a logger
	observing *observation            // where limits are only observed
	entry     atomic.Pointer[entry]   // nil for most
	closing   atomic.Pointer[closing] // nil for most

	// Written by the goroutine that decides, before it cancels the context.
	stop *Error // the outcome, nil if the function has returned in time

	// Written by the function's goroutine before returned is set.
	err error
}

// engine is what the heartbeat cell may ask of an execution, see pulse.Engine.
type engine Execution

// prepare fixes the limits and starts the clock.
func (e *Execution) prepare() {
	if !e.limited {
		e.takeDefault()
	}
	var warnings []string
	e.limits, warnings = e.limits.Normalize()
	for _, w := range warnings {
		e.postLog(slog.LevelWarn, w) // delivered after Started
	}
	e.limits.Grace = e.limits.grace()
	e.armed, e.warnedFor = pulse.Forever, -1
	e.cell.Init(pulse.Of(e.caller), e.clock, e.limits.Idle, (*engine)(e))
	if e.observe {
		e.observing = new(observation)
	}
	if e.tool != "" {
		e.caller = pprof.WithLabels(e.caller, pprof.Labels("tool", e.tool))
	}
}

// takeDefault gives the execution the limits of the process.
func (e *Execution) takeDefault() {
	if c := processDefault.Load(); c != nil {
		e.limits = *c
		return
	}
	env := theEnvironment()
	e.limits = env.limits
	e.logEnvironment(env)
}

// borrowTotal makes the caller's deadline, or that of the environment, the total if it comes first (SPEC 3.12,
// 18.1). It reports false if that has passed.
func (e *Execution) borrowTotal() bool {
	left, ok := e.callersLeft()
	theirs, inherits := e.inheritedLeft()
	if inherits = inherits && (!ok || theirs < left); inherits {
		left = theirs
	} else if !ok {
		return true
	}
	first := e.limits.Total == 0 || left <= e.limits.Total
	if left > 0 && first {
		e.limits.Total, e.borrowed = left, !inherits
	}
	if o := e.observing; o != nil {
		o.cap, e.borrowed, first = left, !inherits, true // also where the total, which is not enforced, comes first
	}
	if inherits && first {
		e.inherit(left)
	}
	return left > 0
}

// callersLeft returns the time until the caller's deadline, and false if there is none.
func (e *Execution) callersLeft() (left time.Duration, ok bool) {
	deadline, ok := e.caller.Deadline()
	if e.cell.Clock() == nil {
		return deadline.Sub(e.cell.Start()), ok
	}
	outer := e.encloser()
	if outer == nil {
		return time.Until(deadline), ok
	}
	left, ok, exact := remaining(e.caller, outer)
	if exact && e.clock == nil { // it is the same clock
		return outer.cap() - e.cell.Start().Sub(outer.cell.Start()), ok
	}
	return left, ok
}

// left returns the rest of the total that is enforced.
func (e *Execution) left() time.Duration { return e.cap() - e.cell.Now() }

// main is the function's goroutine. It must not be inlined, and its receiver must be
// alive across the call: that is how a sample of all stacks tells whose this is.
//
//go:noinline
func (e *Execution) main() {
	// Deferred for Goexit, and directly, because recover works nowhere else.
	defer func() {
		if !e.normal {
			if v := recover(); v != nil {
				e.err = e.newPanic(v)
			} else if e.err == nil {
				e.err = &goexitError{Tool: e.tool}
			}
		}
		e.recordReturn()
	}()
	if (e.reports != nil || e.command != nil) && !e.open() {
		return
	}
	if e.tool != "" {
		pprof.SetGoroutineLabels((*scope)(e))
	}
	e.err = e.fn((*scope)(e))
	e.normal = true
}

// recordReturn records that the function has returned, and makes that the outcome unless
// there is one. A limit that has fallen due, or the end of the caller's context, counts
// even if its goroutine is late, so that the outcome does not depend on which of the two
// runs first.
func (e *Execution) recordReturn() {
	e.cell.Lock()
	e.returned = true
	first := !e.decided
	if first {
		now := e.cell.Flush() // also for the stamp of a burst that has not ended
		e.returnedAt = now
		switch kind := e.due(now); {
		case e.callersToDecide(kind, now):
			first = false
		case kind != 0:
			e.decide(e.newError(kind, now, end{}))
		default:
			e.decide(nil)
		}
	} else {
		e.returnedAt = e.cell.Now()
	}
	abandoned := e.abandoned
	if abandoned {
		e.settle()
	}
	e.wake()
	e.cell.Unlock()

	if first {
		mine := e.reports != nil && e.reportEnd()
		e.cancel(nil)
		e.deliver(mine, true)
	}
	if abandoned {
		e.returnedLate()
	}
}

// decide sets the outcome: nil if the function has returned in time. The cell is locked, and
// nobody has decided before.
func (e *Execution) decide(stop *Error) {
	e.decided, e.stop = true, stop
	if stop != nil {
		e.cancelledAt = stop.Elapsed
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// cap returns the total that is enforced, 0 if none is.
func (e *Execution) cap() time.Duration {
	if e.observing != nil {
		return e.observing.cap
	}
	return e.limits.Total
}

// totalOf returns the execution whose total e has, as a user knows it: an enclosing one if e has
// taken its deadline as its own.
func (e *Execution) totalOf() *Execution {
	for e.borrowed {
		outer := e.enclosing()
		if outer == nil {
			break
		}
		mine, theirs := e.cell.Start().Add(e.cap()), outer.cell.Start().Add(outer.cap())
		if outer.cap() <= 0 || !theirs.Equal(mine) {
			break // it is a plain context's
		}
		e = outer
	}
	return e
}

// enclosing returns the enclosing execution, or nil.
func (e *Execution) enclosing() *Execution { return executionOf(e.cell.Enclosing()) }

// executionOf returns the execution that has the cell, or nil.
func executionOf(c *pulse.Cell) *Execution {
	engine, _ := c.Engine().(*engine)
	return (*Execution)(engine)
}

package timeout

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is about the limits that are enforced: the limits that were given, or else the limits of the process. The
// total is cut to the time that is left until the caller's deadline and until the environment's.

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

// takeDefault gives the execution the limits of SetDefault or, if there are none, of the environment.
func (e *Execution) takeDefault() {
	if c := processDefault.Load(); c != nil {
		e.limits = *c
		return
	}
	env := theEnvironment()
	e.limits = env.limits
	e.logEnvironment(env)
}

// logEnvironment logs what is wrong with the environment variables, once in a process: to the
// logger of the first execution that takes its limits from them and has a logger.
func (e *Execution) logEnvironment(env *environment) {
	if e.log == nil || env.silent.Swap(true) {
		return
	}
	for _, w := range env.warnings {
		e.postLog(slog.LevelWarn, w)
	}
	if env.err != nil {
		e.postLog(slog.LevelWarn, "the environment cannot be read; the default limits stay in force", slog.Any("error", env.err))
	}
}

// borrowTotal cuts the total to the earlier of the caller's deadline and the environment's (SPEC 3.12, 18.1).
// It reports false if that deadline has passed.
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

// callersLeft returns the time until the caller's deadline. ok is false if the caller has no deadline.
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
	if exact && e.clock == nil { // both use the same clock
		return outer.cap() - e.cell.Start().Sub(outer.cell.Start()), ok
	}
	return left, ok
}

// totalOf returns the execution that was given the total that bounds e: e itself, or an enclosing
// execution whose deadline e has borrowed.
func (e *Execution) totalOf() *Execution {
	for e.borrowed {
		outer := e.enclosing()
		if outer == nil {
			break
		}
		mine, theirs := e.cell.Start().Add(e.cap()), outer.cell.Start().Add(outer.cap())
		if outer.cap() <= 0 || !theirs.Equal(mine) {
			break // the deadline is a plain context's
		}
		e = outer
	}
	return e
}

// left returns the time that is left of the enforced total. It is negative once the total has passed.
func (e *Execution) left() time.Duration { return e.cap() - e.cell.Now() }

// deadline returns the instant at which the enforced total ends, and false if no total is enforced.
// On a clock other than the system's, it returns the system's time plus the time that is left: the
// users of a context, net.Dialer and context.WithTimeout among them, compare a deadline with the
// system's time, and would take an instant of 1970 for long past.
func (e *Execution) deadline() (time.Time, bool) {
	total := e.cap()
	if total <= 0 {
		return time.Time{}, false
	}
	if e.cell.Clock() != nil {
		return time.Now().Add(e.left()), true
	}
	return e.cell.Start().Add(total), true
}

// remaining returns the time until ctx's deadline. ok is false if ctx has no deadline. x is the innermost
// execution of ctx, or nil. exact reports whether left was measured on x's own clock.
//
// An execution with a clock of its own shows a deadline that moves with the system's time; see deadline.
// Whether ctx's deadline is this one shows when it is read between two readings of the time that x has
// left. The deadline of a context.WithTimeout would have to lie within the same moment to be mistaken for
// it, and then the mistake makes no difference.
func remaining(ctx context.Context, x *Execution) (left time.Duration, ok, exact bool) {
	if x == nil || x.cell.Clock() == nil || x.cap() <= 0 {
		deadline, ok := ctx.Deadline()
		return time.Until(deadline), ok, false
	}
	most, from := x.left(), time.Now()
	deadline, ok := ctx.Deadline()
	least, to := x.left(), time.Now()
	if deadline.Before(from.Add(least)) || deadline.After(to.Add(most)) {
		return time.Until(deadline), ok, false
	}
	return least, ok, true
}

// Remaining returns the time that is left until the deadline of ctx or the end of a total of the executions
// that ctx belongs to, whichever comes first. Outside an execution, TOOL_DEADLINE counts too. ok is false if
// there is neither a deadline nor a total. Once the instant has passed, left is 0 and ok is true.
//
// The total of an execution under [WithObserveOnly] does not count, because it stops nothing.
func Remaining(ctx context.Context) (left time.Duration, ok bool) {
	x := executionOf(pulse.Unmuted(ctx))
	left, ok, _ = remaining(ctx, x)
	if x == nil {
		left, ok = remainingInherited(left, ok)
	}
	return max(left, 0), ok
}

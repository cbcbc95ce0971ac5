package timeout

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is about the limits that are enforced: those that were given, or of the process, and of them the total, which
// is also what is left of the caller's deadline, or of the environment's.

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

// logEnvironment logs what is wrong with the variables to the logger of the first execution
// that takes its limits from them and has one.
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
	if exact && e.clock == nil { // both use the same clock
		return outer.cap() - e.cell.Start().Sub(outer.cell.Start()), ok
	}
	return left, ok
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
			break // the deadline is a plain context's
		}
		e = outer
	}
	return e
}

// left returns the rest of the total that is enforced.
func (e *Execution) left() time.Duration { return e.cap() - e.cell.Now() }

// deadline is the instant of the total that is enforced, which borrowTotal has cut to the caller's.
// On a clock that is not the system's it is the system's now plus what is left: a context's users,
// net.Dialer and context.WithTimeout among them, compare it with that, and would take an instant of
// 1970 for long past.
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

// remaining returns the time until ctx's deadline. x is the innermost execution of ctx.
//
// On a clock of its own an execution shows a deadline that moves with the system's time, see
// deadline. If ctx's deadline is that one, what is left is exact only on that clock. Reading it
// between two readings of the execution's tells whether it is: the deadline of a
// context.WithTimeout in between would have to lie within the same moment, and then it makes no
// difference. exact reports whether ctx's deadline is that of the execution.
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

// Remaining returns how much time is left before the earliest of the totals of the executions that
// ctx belongs to and the deadline of ctx. Outside an execution TOOL_DEADLINE counts, too. It reports false if
// there is none of these. Once that instant has passed, it returns 0 and true.
//
// Under [WithObserveOnly] the total of that execution does not count, because it stops nothing.
func Remaining(ctx context.Context) (left time.Duration, ok bool) {
	x := executionOf(pulse.Unmuted(ctx))
	left, ok, _ = remaining(ctx, x)
	if x == nil {
		left, ok = remainingInherited(left, ok)
	}
	return max(left, 0), ok
}

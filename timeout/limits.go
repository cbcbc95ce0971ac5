package timeout

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file determines the enforced limits: those of the options or, without any, the process default. The total is
// cut to the time left until the caller's deadline and until TOOL_DEADLINE.

// prepare sets the limits, except for deadlines, and starts the heartbeat.
func (e *Execution) prepare() {
	if !e.limited {
		limits, set := ProcessDefault()
		if e.limits = limits; !set {
			e.logEnvironment(theEnvironment())
		}
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

// logEnvironment logs the warnings and the error of the environment variables, once in a process: to the logger of
// the first execution that takes its limits from them and has a logger.
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

// borrowTotal cuts the total to the earlier of the caller's deadline and TOOL_DEADLINE, if there is one (SPEC 3.12,
// 18.1). It returns false if that deadline has passed.
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
		o.cap, e.borrowed, first = left, !inherits, true // even if the total, which is only observed, ends first
	}
	if inherits && first {
		e.inherit(left)
	}
	return left > 0
}

// callersLeft returns the time from the start until the caller's deadline. ok is false if the caller has no deadline.
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

// totalOf returns the execution that defines the total of e: e itself, or the enclosing execution whose deadline e
// has borrowed.
func (e *Execution) totalOf() *Execution {
	for e.borrowed {
		outer := e.enclosing()
		if outer == nil {
			break
		}
		mine, theirs := e.cell.Start().Add(e.cap()), outer.cell.Start().Add(outer.cap())
		if outer.cap() <= 0 || !theirs.Equal(mine) {
			break // the deadline is that of another context
		}
		e = outer
	}
	return e
}

// left returns the time left of the enforced total. It is negative once the total has passed, and meaningless if no
// total is enforced.
func (e *Execution) left() time.Duration { return e.cap() - e.cell.Now() }

// deadline returns the instant at which the enforced total ends, and false if no total is enforced. On a clock given
// by WithClock, it returns the system's time plus the time left, because the users of a context, such as net.Dialer
// and context.WithTimeout, compare its deadline with the system's time.
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

// remaining returns the time until ctx's deadline. ok is false if ctx has no deadline. x is the innermost execution
// of ctx, or nil. exact reports whether left was measured on x's own clock.
//
// The deadline of an execution on a clock of its own moves with the system's time; see deadline. To recognize it,
// remaining reads ctx's deadline between two readings of the time left of x: x's deadline must lie between the two
// instants that follow from them. A deadline of context.WithTimeout in this short interval is taken for x's, with
// almost the same result.
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

// Remaining returns the time left until the deadline of ctx or the end of the total of an execution that ctx belongs
// to, whichever comes first. Outside an execution, TOOL_DEADLINE counts too. ok is false if there is neither a
// deadline nor a total. Once the deadline or the total has passed, left is 0 and ok is true.
//
// The total of an execution under [WithObserveOnly] does not count, because it is not enforced; nor does a deadline
// or a total that context.WithoutCancel has removed from ctx.
func Remaining(ctx context.Context) (left time.Duration, ok bool) {
	x := executionOf(pulse.Unmuted(ctx))
	left, ok, _ = remaining(ctx, x)
	if x == nil {
		left, ok = remainingInherited(left, ok)
	}
	return max(left, 0), ok
}

package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// reportEnd reports, before the context is cancelled, that a limit has stopped the execution, or that the function
// has returned in time. After a stop, conclude reports the rest once the function has returned or was abandoned. mine
// is the result of post. reportEnd is called only if there are reports. It must not be inlined, because its frame
// would make the caller's stack grow.
//
//go:noinline
func (e *Execution) reportEnd() (mine bool) {
	if e.stalls != nil {
		mine = e.reportStall(e.stalls.unreported)
	}
	if e.observing != nil {
		mine = e.reportExceeded() || mine
	}
	if stop := e.stop; stop != nil {
		if e.command != nil && stop.Timeout() && stop.Stack == nil {
			stop.Stack = e.command.Describe(true) // not taken in fire, if a late return has found the limit
		}
		if e.observing == nil && stop.Timeout() && e.hasHook(hookExceeded) {
			s := e.snapshotOf(stop, StateStopping)
			mine = e.post(report{hook: hookExceeded, s: &s}) || mine
		}
		return mine
	}
	if e.command != nil {
		return mine
	}
	if e.observing != nil {
		s := e.snapshot(e.err)
		s.Returned = e.normal
		mine = e.logObserved(&s) || mine
	}
	mine = e.postHook(hookFinished, nil) || mine
	return e.reportPanic() || mine
}

// reportPanic logs a panic that Run returns as an error. mine is the result of post; it is false if there is no such
// panic.
func (e *Execution) reportPanic() (mine bool) {
	return e.panicked() != nil && e.recovers && e.logPanic("tool panicked")
}

// reportStopped reports that the function of a stopped execution has returned within the grace. mine is the result of
// post. Like reportEnd, reportStopped must not be inlined.
//
//go:noinline
func (e *Execution) reportStopped(out *Error) (mine bool) {
	mine = e.logStop(out)
	s := e.snapshotOf(out, StateEnded)
	mine = e.logObserved(&s) || mine
	mine = e.postHook(hookFinished, &s) || mine
	return e.reportPanic() || mine
}

// abandon sets Abandoned and the Stack of out, and reports that the function did not return within the grace.
func (e *Execution) abandon(out *Error) {
	out.Abandoned = true
	if s := e.stack(&afterGrace, budgetAfterGrace); s != nil {
		out.Stack = s
	}
	mine := e.logStop(out)
	if e.reports != nil {
		s := e.snapshotOf(out, StateAbandoned)
		mine = e.postHook(hookAbandoned, &s) || mine
		mine = e.logObserved(&s) || mine
		mine = e.postHook(hookFinished, &s) || mine
	}
	close(e.identity().reported)
	e.deliver(mine, false)
}

// returnedLate reports that an abandoned function has returned. It runs on the function's goroutine, and waits until
// the abandonment has been reported.
func (e *Execution) returnedLate() {
	<-e.identity().reported
	if e.reports == nil {
		return
	}
	s := e.snapshot(e.err)
	s.Returned = e.normal
	mine := e.postHook(hookReturned, &s)
	if e.panicked() != nil {
		mine = e.logPanic("abandoned tool panicked") || mine
	} else {
		mine = e.postLog(slog.LevelWarn, "abandoned tool returned", slog.Any("execution", s)) || mine
	}
	e.deliver(mine, true)
}

func (e *Execution) logPanic(msg string) (mine bool) {
	return e.postLog(slog.LevelError, msg, slog.Any("error", panicText{e.panicked()}), slog.String("stack", string(e.panicked().Stack)))
}

// A panicText is a panic whose text is made only when it is logged, because that may call methods of the value.
type panicText struct{ err *PanicError }

func (p panicText) LogValue() slog.Value { return slog.StringValue(p.err.Error()) }

// logStop queues a record about a stop, unless there is no logger. mine is the result of post.
//
//go:noinline
func (e *Execution) logStop(out *Error) (mine bool) {
	if e.log == nil {
		return false
	}
	level, msg := slog.LevelWarn, "tool timed out"
	switch {
	case out.Abandoned:
		level, msg = slog.LevelError, "tool was abandoned: it did not return when its context was cancelled"
	case out.Kind == ErrAborted:
		level, msg = slog.LevelInfo, "tool was aborted"
	}
	attrs := []slog.Attr{slog.Any("error", out)}
	if out.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(out.Stack)))
	}
	return e.postLog(level, msg, attrs...)
}

// reportMoment reports what the timer has found without stopping the execution: a stall if stall is not 0, the limits
// that are only observed, and silence near the idle limit. It must not be inlined, because onTimer must keep its
// stack small.
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

// reportStall reports the newest stall, which lasted for overdue, unless overdue is 0 or the queue is full. mine is
// the result of post. The caller holds no lock. A beat finds a stall under the cell's lock, so it leaves the report
// to the timer's function, which is about to run, or to the end.
func (e *Execution) reportStall(overdue time.Duration) (mine bool) {
	if overdue == 0 || e.reports == nil || e.crowded() {
		return false
	}
	s := e.snapshot(nil)
	mine = e.postHook(hookStalled, &s)
	return e.postLog(slog.LevelWarn, "the process was stalled; the tool's idle check starts afresh",
		slog.Duration("overdue", human.Duration(overdue)), slog.Any("execution", s)) || mine
}

// reportClosing reports that the execution is closing. Its goroutine waits for no hook: it may belong to another
// execution or to the caller of BeginClosing. It must not be inlined, because onTimer must keep its stack small.
//
//go:noinline
func (e *Execution) reportClosing() {
	s := e.snapshot(nil)
	e.deliver(e.postHook(hookClosing, &s), false)
}

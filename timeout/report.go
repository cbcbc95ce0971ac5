package timeout

import (
	"cmp"
	"log/slog"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/internal/label"
)

var abandonedNow atomic.Int64

// AbandonedCount returns the number of executions of this process that have left a goroutine behind: of
// a function that was abandoned and has not returned since, or of a hook or log handler that [Run] has
// waited for in vain. The goroutine keeps everything that it refers to. A server whose count keeps growing
// should be restarted. [Running] lists these executions, even without a watcher.
func AbandonedCount() int { return int(abandonedNow.Load()) }

// reportEnd reports the outcome, before the context is cancelled: that a limit has stopped the execution,
// or that the function has returned in time. What else there is to say of a stop is known when the function
// has returned, and Run reports it. It is called only where somebody wants to know, and must not be
// inlined: its frame makes the stack grow.
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
			stop.Stack = e.command.Describe(true) // a return or a beat that came too late found the limit
		}
		if e.observing == nil && stop.Timeout() && e.wants(hookExceeded) {
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

// reportPanic logs a panic that Run returns as an error.
func (e *Execution) reportPanic() (mine bool) {
	return e.panicked() != nil && e.recovers && e.logPanic("tool panicked")
}

// reportStopped reports that the function of a stopped execution has returned within the grace. See reportEnd.
//
//go:noinline
func (e *Execution) reportStopped(out *Error) (mine bool) {
	mine = e.logStop(out)
	s := e.snapshotOf(out, StateEnded)
	mine = e.logObserved(&s) || mine
	mine = e.postHook(hookFinished, &s) || mine
	return e.reportPanic() || mine
}

// abandon reports that the function did not return within the grace.
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

// returnedLate reports that an abandoned function has returned. It runs on the
// function's goroutine, and lets the report of the abandonment go first.
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

// A panicText is the text of a panic, made when it is logged: the value may have a method.
type panicText struct{ err *PanicError }

func (p panicText) LogValue() slog.Value { return slog.StringValue(p.err.Error()) }

// logStop logs a stop. It is called only if there is a logger; see exceeded.
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
	case out.Kind == KindAborted:
		level, msg = slog.LevelInfo, "tool was aborted"
	}
	attrs := []slog.Attr{slog.Any("error", out)}
	if out.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(out.Stack)))
	}
	return e.postLog(level, msg, attrs...)
}

// named returns the attributes by which a reader of the log knows the execution. A client's request has the
// name of its method, which says neither what was called nor who was asked (SPEC 8.10).
func (e *Execution) named() (attrs []slog.Attr) {
	tool := e.tool
	var of label.Request
	if e.operation == OperationRequest {
		of = label.Of(e.caller)
		tool = cmp.Or(of.Tool, tool)
	}
	if tool != "" {
		attrs = append(attrs, slog.String("tool", tool))
	}
	if of.Tool != "" {
		attrs = append(attrs, slog.String("method", e.tool))
	}
	if of.Server != "" {
		attrs = append(attrs, slog.String("server", of.Server))
	}
	return attrs
}

package timeout

import (
	"cmp"
	"log/slog"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/internal/label"
)

var abandonedNow atomic.Int64

// AbandonedCount returns the number of functions in this process that have been abandoned and have
// not returned since. Each of them keeps a goroutine, and everything that the goroutine refers to.
// A server whose count keeps growing should be restarted. [Running] lists them, even without a
// watcher.
func AbandonedCount() int { return int(abandonedNow.Load()) }

// abandon reports that the function did not return within the grace.
func (e *Execution) abandon(out *Error) {
	out.Abandoned = true
	if s := e.stack(&sampler, budgetAfterGrace); s != nil {
		out.Stack = s
	}
	e.logStop(out)
	defer close(e.identity().reported)
	defer e.finished(out) // also where a hook calls runtime.Goexit
	if e.wants(hookAbandoned) {
		s := e.snapshotOf(out, StateAbandoned)
		e.call(hookAbandoned, &s)
	}
}

// exceeded reports that a limit has stopped the execution. Like finished it is called only where
// somebody wants to know, and must not be inlined: its frame makes the stack grow.
//
//go:noinline
func (e *Execution) exceeded(out *Error) {
	seen := *out // a hook may keep it, and what becomes of the function is still to be added
	s := e.snapshotOf(&seen, StateStopping)
	e.call(hookExceeded, &s)
}

// finished reports that Run is about to return out or, if that is nil, the function's error. It
// must not be inlined: Run is where the stack should be small.
//
//go:noinline
func (e *Execution) finished(out *Error) {
	var s Snapshot
	switch {
	case out == nil:
		s = e.snapshot(e.err)
		s.Returned = e.normal
	case out.Abandoned:
		s = e.snapshotOf(out, StateAbandoned)
	default:
		s = e.snapshotOf(out, StateEnded)
	}
	e.logObserved(&s)
	e.call(hookFinished, &s)
}

// returnedLate reports that an abandoned function has returned. It runs on the
// function's goroutine, and lets the report of the abandonment go first.
func (e *Execution) returnedLate() {
	n := e.identity()
	<-n.reported
	n.remove()
	s := e.snapshot(e.err)
	s.Returned = e.normal
	e.call(hookReturned, &s)
	if e.panicked != nil {
		e.logPanic("abandoned tool panicked")
		return
	}
	e.logAttrs(slog.LevelWarn, "abandoned tool returned", slog.Any("execution", s))
}

func (e *Execution) logPanic(msg string) {
	e.logAttrs(slog.LevelError, msg, slog.String("error", e.panicked.Error()), slog.String("stack", string(e.panicked.Stack)))
}

// logStop is called only where there is a logger; see exceeded.
//
//go:noinline
func (e *Execution) logStop(out *Error) {
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
	e.logAttrs(level, msg, attrs...)
}

func (e *Execution) logAttrs(level slog.Level, msg string, attrs ...slog.Attr) {
	if e.log == nil {
		return
	}
	defer func() { _ = recover() }() // a handler that panics must not end the process
	if named := e.named(); named != nil {
		attrs = append(named, attrs...)
	}
	e.log.LogAttrs(e.caller, level, msg, attrs...)
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

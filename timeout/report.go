package timeout

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

var abandonedNow atomic.Int64

// Abandoned is how many functions have been abandoned in this process and have not
// returned since. Each of them holds a goroutine and whatever it works on. A server
// whose number keeps growing is best restarted.
func Abandoned() int { return int(abandonedNow.Load()) }

// abandon reports that the function did not return within the grace.
func (e *execution) abandon(out *Error) {
	defer close(e.reported)
	out.Abandoned = true
	if s := e.stack(budgetAfterGrace); s != nil {
		out.Stack = s
	}
	e.logStop(out)
	e.observe(hookAbandoned, e.snapshotOf(out))
	e.observe(hookFinished, e.snapshotOf(out))
}

// returnedLate reports that an abandoned function has returned. It runs on the
// function's goroutine, and lets the report of the abandonment go first.
func (e *execution) returnedLate() {
	abandonedNow.Add(-1)
	<-e.reported
	e.observeNow(hookReturned, e.err)
	if e.panicked != nil {
		e.logAttrs(slog.LevelError, "abandoned tool panicked",
			slog.String("error", e.err.Error()), slog.String("stack", string(e.panicked.Stack)))
		return
	}
	e.logAttrs(slog.LevelWarn, "abandoned tool returned", slog.Any("execution", e.snapshot(e.err)))
}

func (e *execution) logStop(out *Error) {
	level, msg := slog.LevelWarn, "tool timed out"
	switch {
	case out.Abandoned:
		level, msg = slog.LevelError, "tool was abandoned: it did not return when its context was cancelled"
	case out.Kind == Aborted:
		level, msg = slog.LevelInfo, "tool was aborted"
	}
	attrs := []slog.Attr{slog.Any("error", out)}
	if out.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(out.Stack)))
	}
	e.logAttrs(level, msg, attrs...)
}

func (e *execution) logAttrs(level slog.Level, msg string, attrs ...slog.Attr) {
	if e.log == nil {
		return
	}
	defer func() { _ = recover() }() // a handler that panics must not end the process
	if e.tool != "" {
		attrs = append([]slog.Attr{slog.String("tool", e.tool)}, attrs...)
	}
	e.log.LogAttrs(e.caller, level, msg, attrs...)
}

// snapshot is the state of the execution as it is now.
func (e *execution) snapshot(err error) Snapshot {
	e.cell.Lock()
	defer e.cell.Unlock()
	now := e.cell.Now()
	return Snapshot{
		Tool: e.tool, Limits: e.limits, Elapsed: now, SinceBeat: max(now-e.cell.Last(), 0),
		LongestGap: e.cell.Longest(now), Beats: e.cell.Count(), Detail: e.cell.Detail(), Stalls: e.stalls, Err: err,
	}
}

// snapshotOf is the state of the execution when it was stopped: the grace that came
// after would make the longest gap, by which limits are chosen, longer than it was.
func (e *execution) snapshotOf(out *Error) Snapshot {
	return Snapshot{
		Tool: e.tool, Limits: e.limits, Elapsed: out.Elapsed, SinceBeat: out.SinceBeat,
		LongestGap: out.LongestGap, Beats: out.Beats, Detail: out.Detail, Stalls: out.Stalls, Err: out, Stack: out.Stack,
	}
}

// The hooks by name, so that there is one place that calls them.
var (
	hookStarted   = func(h *Hooks) func(context.Context, Snapshot) { return h.Started }
	hookNearIdle  = func(h *Hooks) func(context.Context, Snapshot) { return h.NearIdle }
	hookFinished  = func(h *Hooks) func(context.Context, Snapshot) { return h.Finished }
	hookAbandoned = func(h *Hooks) func(context.Context, Snapshot) { return h.Abandoned }
	hookReturned  = func(h *Hooks) func(context.Context, Snapshot) { return h.Returned }
)

// observeNow calls a hook with the present state.
func (e *execution) observeNow(which func(*Hooks) func(context.Context, Snapshot), err error) {
	e.observe(which, e.snapshot(err))
}

func (e *execution) observe(which func(*Hooks) func(context.Context, Snapshot), s Snapshot) {
	for i := range e.hooks {
		if f := which(&e.hooks[i]); f != nil {
			e.call(f, s)
		}
	}
}

func (e *execution) call(f func(context.Context, Snapshot), s Snapshot) {
	defer func() {
		if v := recover(); v != nil {
			e.logAttrs(slog.LevelError, "hook panicked",
				slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
		}
	}()
	f(e, s)
}

package timeout

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/tooldeadline/tooldeadline/internal/label"
)

// open calls the hooks that come before the function, on its goroutine. It reports whether the function is to
// be called: not if the execution was abandoned meanwhile.
func (e *Execution) open() bool {
	if e.reports != nil {
		e.openHooks()
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if e.abandoned {
		e.err = e.stop
	}
	e.begun = !e.abandoned
	return e.begun
}

// openHooks calls Context and Started, for which the function has to wait. The function does not wait for a
// log handler, even if a warning has to be logged first.
func (e *Execution) openHooks() {
	x := report{hook: hookStarted}
	over := false
	defer func() {
		if !over {
			e.handOver(&x)
		}
	}()
	e.enrich()
	e.tell(&x)
	over = true
	e.cell.Lock()
	more := !e.idle()
	e.cell.Unlock()
	e.deliver(more, false)
}

// enrich calls the Context hooks.
func (e *Execution) enrich() {
	if w := e.reports.watch; w != nil {
		e.enrichByAll(w.hooks)
	}
	e.enrichByAll(e.hooks)
}

func (e *Execution) enrichByAll(all []Hooks) {
	for i := range all {
		if f := all[i].Context; f != nil {
			e.enrichBy(f)
		}
	}
}

func (e *Execution) enrichBy(f func(context.Context, Snapshot) context.Context) {
	defer e.survive()
	if ctx := f(e.callersContext(), e.snapshot(nil)); ctx != nil {
		e.reports.caller = &enriched{e.caller, ctx}
	}
}

// deliver delivers the reports if mine, the result of post, is true: on this goroutine, which then waits for
// the hooks, if here is true, and otherwise on another goroutine.
func (e *Execution) deliver(mine, here bool) {
	switch {
	case !mine:
	case here:
		e.drain()
	default:
		go e.drain()
	}
}

// drain delivers the reports until there are none. A hook or a log handler that calls runtime.Goexit ends
// this goroutine, and another goroutine delivers the rest.
func (e *Execution) drain() {
	var x report
	over := false
	defer func() {
		if !over {
			e.handOver(&x)
		}
	}()
	for e.take(&x) {
		e.tell(&x)
	}
	over = true
}

// handOver has another goroutine deliver, beginning with the rest of x.
func (e *Execution) handOver(x *report) {
	rest := []report{*x}
	if x.hook != 0 && e.log != nil {
		rest = []report{{record: &record{level: slog.LevelError, msg: "hook called runtime.Goexit"}}, *x}
	}
	r := e.reports
	e.cell.Lock()
	r.queue = slices.Insert(r.queue, 0, rest...)
	e.cell.Unlock()
	go e.drain()
}

// take sets *x to the next report. If there is none, it marks the queue as idle and returns false.
func (e *Execution) take(x *report) bool {
	r := e.reports
	e.cell.Lock()
	defer e.cell.Unlock()
	if len(r.queue) == 0 && r.dropped > 0 {
		*x = report{record: &record{slog.LevelWarn, "hooks or the log handler were too slow for all reports", []slog.Attr{slog.Int("left_out", r.dropped)}}}
		r.dropped = 0
		return true
	}
	if e.idle() {
		return false
	}
	*x = r.queue[0]
	r.queue[0] = report{} // the old value would keep a snapshot alive
	r.queue = r.queue[1:]
	return true
}

// idle ends the delivery if the queue is empty, and reports whether it is. The cell is locked.
func (e *Execution) idle() bool {
	r := e.reports
	if len(r.queue) > 0 || r.dropped > 0 {
		return false
	}
	r.queue = r.room[:0]
	r.busy = false
	e.settle()
	e.wake()
	return true
}

// tell delivers x. It records each step before it takes the step, so that handOver repeats none.
func (e *Execution) tell(x *report) {
	if rec := x.record; rec != nil {
		x.record = nil
		e.write(rec)
		return
	}
	if e.hasHook(x.hook) {
		e.callHooks(x)
	}
	if x.hook == hookStarted {
		e.list()
	}
}

func (e *Execution) callHooks(x *report) {
	var s Snapshot
	switch {
	case x.s != nil:
		s = *x.s
	case x.hook == hookFinished:
		s = e.snapshot(e.err)
		s.Returned = e.normal
	default:
		s = e.snapshot(nil)
	}
	first, second := e.hooks, []Hooks(nil)
	if w := e.reports.watch; w != nil {
		second = w.hooks
	}
	if x.hook == hookStarted { // the hooks that begin first end last
		first, second = second, first
	}
	for x.next < len(first)+len(second) {
		i := x.next
		x.next++
		all := first
		if i >= len(first) {
			all, i = second, i-len(first)
		}
		if f := x.hook.function(&all[i]); f != nil {
			e.callOne(f, &s)
		}
	}
}

func (e *Execution) callOne(f func(context.Context, Snapshot), s *Snapshot) {
	defer e.survive()
	f((*scope)(e), *s)
}

// survive is deferred where a hook is called, by the goroutine that delivers. The record waits for its turn: a log handler must
// not keep the function, which waits for the hooks at the start.
func (e *Execution) survive() {
	if v := recover(); v != nil && e.log != nil {
		e.postLog(slog.LevelError, "hook panicked", slog.String("panic", textOf(v)), slog.String("stack", string(debug.Stack())))
	}
}

// write writes a record.
func (e *Execution) write(rec *record) {
	defer func() { _ = recover() }() // a handler that panics must not end the process
	attrs := rec.attrs
	if named := e.named(); named != nil {
		attrs = append(named, attrs...)
	}
	e.log.LogAttrs(e.callersContext(), rec.level, rec.msg, attrs...)
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

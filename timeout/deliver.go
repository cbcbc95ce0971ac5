package timeout

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/tooldeadline/tooldeadline/internal/label"
)

// open calls the hooks Context and Started on the function's goroutine, and reports whether the function is to be
// called. It returns false if the execution was abandoned meanwhile.
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

// openHooks calls Context and Started, for which the function waits. Another goroutine delivers the reports that are
// queued by then, so that the function does not wait for a log handler.
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

// enrich calls the Context hooks, those of watchers first.
func (e *Execution) enrich() {
	for _, all := range [][]*Hooks{e.reports.watch, e.hooks} {
		for _, h := range all {
			if h.Context != nil {
				e.enrichBy(h.Context)
			}
		}
	}
}

func (e *Execution) enrichBy(f func(context.Context, Snapshot) context.Context) {
	defer e.survive()
	if ctx := f(e.callersContext(), e.snapshot(nil)); ctx != nil {
		e.reports.caller = &enriched{e.caller, ctx}
	}
}

// deliver delivers the queued reports if mine, the result of post, is true. It does so on the calling goroutine if
// here is true, and otherwise on a new one.
func (e *Execution) deliver(mine, here bool) {
	switch {
	case !mine:
	case here:
		e.drain()
	default:
		go e.drain()
	}
}

// drain delivers reports until the queue is empty. If a hook or a log handler calls runtime.Goexit, which ends this
// goroutine, a new goroutine delivers the rest.
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

// handOver starts a goroutine that delivers the rest of x and then the queue.
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

// take sets *x to the next report and returns true. If there is none, it marks the queue as idle and returns false.
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

// idle ends the delivery if the queue is empty, and reports whether it has done so. The cell is locked.
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

// tell delivers x. It records each step in x before the step, so that handOver repeats none.
func (e *Execution) tell(x *report) {
	if rec := x.record; rec != nil {
		x.record = nil
		e.write(rec)
		return
	}
	if e.hasHook(x.hook) {
		if x.hook == hookFinished || x.hook == hookExceeded && e.observing == nil {
			// It is queued just before the cancellation, and this goroutine may have been delivering already.
			<-e.inner.Done()
		}
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
	first, second := e.hooks, e.reports.watch
	if x.hook == hookStarted { // the hooks that are called first at the start are called last at the end
		first, second = second, first
	}
	for all := slices.Concat(first, second); x.next < len(all); {
		f := x.hook.function(all[x.next])
		if x.next++; f != nil {
			e.callOne(f, &s)
		}
	}
}

func (e *Execution) callOne(f func(context.Context, Snapshot), s *Snapshot) {
	defer e.survive()
	f((*scope)(e), *s)
}

// survive recovers and logs a panic of a hook; each call of a hook defers it. It queues the log record instead of
// writing it, because the function waits for Context and Started and must not wait for a log handler.
func (e *Execution) survive() {
	if v := recover(); v != nil && e.log != nil {
		e.postLog(slog.LevelError, "hook panicked", slog.String("panic", textOf(v)), slog.String("stack", string(debug.Stack())))
	}
}

// write passes rec to the logger.
func (e *Execution) write(rec *record) {
	defer func() { _ = recover() }() // a handler that panics must not end the process
	attrs := rec.attrs
	if named := e.named(); named != nil {
		attrs = append(named, attrs...)
	}
	e.log.LogAttrs(e.callersContext(), rec.level, rec.msg, attrs...)
}

// named returns the log attributes that identify the execution. The name of a client's request is its method, so the
// request's tool and server are added if they are known (SPEC 8.10).
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

package timeout

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is the way from an execution to its hooks and its logger (SPEC 3.24). They are the caller's
// code, which may block, and nothing that stops, kills or returns may wait for it. So everything that
// is to be said is a report in one queue of the execution, and one goroutine at a time delivers: hooks are
// called in the order in which things happened, and never at the same time.
//
// Who adds a report to an idle queue sees to its delivery: on its own goroutine if nobody waits for that
// one, as for the function's before and after the function, and the timer's; on a new one otherwise. Who
// adds to a queue that is being delivered leaves it at that. A report that comes before a cancellation
// is added before it and delivered after it, so that the goroutines that the cancellation wakes come
// later.
//
// Run waits at its end until the queue is empty, but no longer than until a grace after the delivery
// has begun. What is left then is delivered when the code that blocks has returned.
//
// Rejected: a goroutine for each execution, which most runs would pay for nothing; a lock that hooks are
// called under, since a hook may call everything, and whoever has something to report would wait; a
// bound for each hook, since bounds of several hooks add up.

// leastPatience is how long Run waits for hooks where the grace is shorter than that, or there is none.
const leastPatience = 100 * time.Millisecond

// mostReports is how many reports may wait before those that tell of a moment are left out.
const mostReports = 64

// A reports is what only an execution with hooks or a logger has.
type reports struct {
	watch *watchers // those of the process, when it began; may be nil

	// caller is the caller's context with the values that hooks have added, nil where there are none. It
	// is set before the first report is delivered, and so before anybody has the function's context.
	caller *enriched

	// Under the cell's lock.
	queue   []report
	busy    bool          // a goroutine delivers
	since   time.Duration // when it has begun
	late    bool          // Run has returned without waiting for it any longer
	dropped int           // reports of moments that were left out
	room    [2]report
}

// A report is a hook to call, or a record to log.
type report struct {
	hook   hook
	s      *Snapshot // nil: the state when it is delivered
	next   int       // how many hooks have been called
	record *record
}

type record struct {
	level slog.Level
	msg   string
	attrs []slog.Attr
}

// startReports makes the queue. The function's goroutine will be the first to deliver.
func (e *Execution) startReports() {
	watch := watching.Load()
	if watch == nil && len(e.hooks) == 0 && e.log == nil {
		return
	}
	r := &reports{watch: watch, busy: true}
	r.queue = r.room[:0]
	e.reports = r
}

// post adds a report. It reports whether the caller must call deliver. The caller must not hold the cell's
// lock.
func (e *Execution) post(x report) (mine bool) {
	r := e.reports
	if r == nil {
		return false
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	r.queue = append(r.queue, x)
	if r.busy {
		return false
	}
	r.busy, r.since = true, e.cell.Now()
	return true
}

// crowded reports whether so many reports wait that the report of a moment, of which there may be any number,
// must be left out, and counts it: the number is logged later.
func (e *Execution) crowded() bool {
	r := e.reports
	e.cell.Lock()
	defer e.cell.Unlock()
	if len(r.queue) < mostReports {
		return false
	}
	r.dropped++
	return true
}

// postHook is post for a hook, if anybody has set it.
func (e *Execution) postHook(h hook, s *Snapshot) (mine bool) {
	return e.wants(h) && e.post(report{hook: h, s: s})
}

// postLog is post for a record, if there is a logger.
func (e *Execution) postLog(level slog.Level, msg string, attrs ...slog.Attr) (mine bool) {
	return e.log != nil && e.post(report{record: &record{level, msg, attrs}})
}

// deliver delivers the reports if mine, the result of post, is set: on this goroutine if here is set, so
// that it waits for hooks, and otherwise on another one.
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
// this goroutine, and the rest is delivered on another one.
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

// take returns the next report, or false if there is none, and then the queue is idle.
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
	r.queue[0] = report{} // which would keep a snapshot
	r.queue = r.queue[1:]
	return true
}

// idle ends the delivery if the queue is empty. The cell is locked.
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

// tell delivers x. It notes each step before it takes the step, so that handOver does not repeat one.
func (e *Execution) tell(x *report) {
	if rec := x.record; rec != nil {
		x.record = nil
		e.write(rec)
		return
	}
	if e.wants(x.hook) {
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
	if x.hook == hookStarted { // the first to begin is the last to end
		first, second = second, first
	}
	for x.next < len(first)+len(second) {
		i := x.next
		x.next++
		all := first
		if i >= len(first) {
			all, i = second, i-len(first)
		}
		if f := x.hook.of(&all[i]); f != nil {
			e.callOne(f, &s)
		}
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

// callersContext is the caller's context with what hooks have added.
func (e *Execution) callersContext() context.Context {
	if r := e.reports; r != nil && r.caller != nil {
		return r.caller
	}
	return e.caller
}

// open calls the hooks that come before the function, on its goroutine. It reports whether the function must
// be called, which it must not if the execution was abandoned meanwhile.
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

// awaitReports waits until all reports have been delivered, and reports false if that takes too long. It is
// called once, at the end of Run.
func (e *Execution) awaitReports() bool {
	r := e.reports
	if r == nil {
		return true
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if r.busy {
		// Those of a function that has returned in time are being delivered on its goroutine, and
		// mostly need no timer.
		e.cell.Unlock()
		runtime.Gosched()
		e.cell.Lock()
	}
	for r.busy {
		patience := max(e.limits.grace(), leastPatience)
		now, until := e.cell.Now(), r.since+min(patience, pulse.Forever-r.since)
		if now >= until {
			r.late = true
			e.settle()
			return false
		}
		e.waitUntil(until, now)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	return true
}

// waitUntil waits until somebody calls wake, or the instant has come; Forever is never. The cell is locked,
// and unlocked meanwhile. The timer has no other work: it is called when limits no longer matter.
// Rejected: a timer and a channel for each of these waits, which is much for a hundred thousand limits
// that fall due at once.
func (e *Execution) waitUntil(at, now time.Duration) {
	wait := make(chan struct{})
	e.wait = wait
	if at != pulse.Forever {
		e.arm(at, now)
	}
	e.cell.Unlock()
	<-wait
	e.cell.Lock()
}

// wake ends waitUntil. The cell is locked.
func (e *Execution) wake() {
	if e.wait != nil {
		close(e.wait)
		e.wait = nil
	}
}

// settle counts and lists the execution as long as it has left something behind: a function that has not
// returned, or a hook or log handler that has not. The cell is locked.
func (e *Execution) settle() {
	left := e.abandoned && !e.returned
	if r := e.reports; r != nil && r.late && r.busy {
		left = true
	}
	switch {
	case left && !e.leaves:
		abandonedNow.Add(1)
		e.identity().insert()
	case !left && e.leaves:
		abandonedNow.Add(-1)
	}
	e.leaves = left
	if n := e.entry.Load(); n != nil && !left && e.cell.Ended() {
		n.remove()
	}
}

// list lists the execution for Running, after Started.
func (e *Execution) list() {
	if e.reports.watch == nil {
		return
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if !e.cell.Ended() {
		e.identity().insert()
	}
}

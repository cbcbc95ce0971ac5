package timeout

import (
	"context"
	"log/slog"
)

// This file is the way from an execution to its hooks and its logger (SPEC 3.24), as far as the queue of what is to be
// said; deliver.go is the rest. Hooks and loggers are the caller's code, which may block, and nothing that stops, kills
// or returns may wait for it. So everything that is to be said is a report in one queue of the execution, and one
// goroutine at a time delivers: hooks are called in the order in which things happened, and never at the same time.
//
// A goroutine that adds a report to an idle queue starts the delivery: it delivers the report itself if nobody
// waits for it, as nobody does for the function's goroutine before and after the function, or for the timer's;
// otherwise a new goroutine does. A goroutine that adds to a queue that is being delivered does no more. A report
// that comes before a cancellation is added before the cancellation and delivered after it, so that the
// goroutines that the cancellation wakes report later.
//
// Run waits at its end until the queue is empty, but no longer than until a grace after the delivery
// has begun. What is left then is delivered when the code that blocks has returned.
//
// Rejected: a goroutine for each execution, which most runs would pay for nothing; a lock that hooks are
// called under, since a hook may call everything, and whoever has something to report would wait; a
// bound for each hook, since bounds of several hooks add up.

// mostReports bounds the queue: while so many reports wait, reports of moments, such as NearIdle, are dropped.
const mostReports = 64

// startReports makes the queue, unless there are no hooks and no logger. The function's goroutine delivers first.
func (e *Execution) startReports() {
	watch := watching.Load()
	if watch == nil && len(e.hooks) == 0 && e.log == nil {
		return
	}
	r := &reports{watch: watch, busy: true}
	r.queue = r.room[:0]
	e.reports = r
}

// hasHook reports whether the execution or a watcher of the process has set the hook h.
func (e *Execution) hasHook(h hook) bool {
	r := e.reports
	return r != nil && (isSet(h, e.hooks) || r.watch != nil && isSet(h, r.watch.hooks))
}

// callersContext returns the caller's context with the values that hooks have added.
func (e *Execution) callersContext() context.Context {
	if r := e.reports; r != nil && r.caller != nil {
		return r.caller
	}
	return e.caller
}

// post adds x to the queue. mine reports whether the caller must call deliver. The caller must not hold the
// cell's lock.
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

// postHook posts a call of the hook h with s, as post does. If h is not set, it does nothing and returns false.
func (e *Execution) postHook(h hook, s *Snapshot) (mine bool) {
	return e.hasHook(h) && e.post(report{hook: h, s: s})
}

// postLog posts a record for the logger, as post does. If there is no logger, it does nothing and returns false.
func (e *Execution) postLog(level slog.Level, msg string, attrs ...slog.Attr) (mine bool) {
	return e.log != nil && e.post(report{record: &record{level, msg, attrs}})
}

// wake ends the wait of waitUntil, if any. The cell is locked.
func (e *Execution) wake() {
	if e.wait != nil {
		close(e.wait)
		e.wait = nil
	}
}

package timeout

import (
	"context"
	"log/slog"
)

// This file queues what an execution reports to its hooks and its logger (SPEC 3.24), and deliver.go delivers it.
// Hooks and loggers are the caller's code, which may block. No goroutine that stops, kills or returns may wait for
// them. Therefore each call of a hook and each log record is a report in a queue of the execution, and one goroutine
// at a time delivers the queue: hooks are called in the order of the events, and never at the same time.
//
// A goroutine that adds a report to an idle queue starts the delivery. It delivers on itself if no one waits for it,
// as for the function's goroutine before and after the function, and for the timer's; otherwise it starts a
// goroutine. If the queue is being delivered already, it only adds the report. A report of a stop is added before the
// context is cancelled, so that it precedes the reports of the goroutines that the cancellation wakes, and its
// delivery is started afterwards.
//
// At its end, Run waits until the queue is empty, but no longer than until a grace after the delivery has begun.
// Reports that are left then are delivered when the hook or handler that blocks has returned.
//
// Rejected: a goroutine for each execution, which most runs do not need; calling hooks under a lock, because a hook
// may call any method, and a goroutine with something to report would wait; a time limit for each hook, because
// several limits add up.

// mostReports is the length of the queue from which reports that may repeat, such as NearIdle, are dropped.
const mostReports = 64

// startReports creates the queue, unless there are no hooks and no logger. The function's goroutine is the first to
// deliver, so the queue is busy from the start.
func (e *Execution) startReports() {
	watch := watched()
	if watch == nil && len(e.hooks) == 0 && e.log == nil {
		return
	}
	r := &reports{watch: watch, busy: true}
	r.queue = r.room[:0]
	e.reports = r
}

// hasHook reports whether the hook h is set in the execution or in a watcher of the process.
func (e *Execution) hasHook(h hook) bool {
	r := e.reports
	return r != nil && (isSet(h, e.hooks) || isSet(h, r.watch))
}

// callersContext returns the caller's context with the values that Context hooks have added.
func (e *Execution) callersContext() context.Context {
	if r := e.reports; r != nil && r.caller != nil {
		return r.caller
	}
	return e.caller
}

// post adds x to the queue. mine reports whether the caller must call deliver, because the queue was idle. The caller
// must not hold the cell's lock.
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

// crowded reports whether the queue is so long that a report that may repeat must be dropped. It counts the dropped
// report; the count is logged later.
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

// postHook queues a call of the hook h with s. mine is the result of post; it is false if h is not set, and then
// nothing is queued.
func (e *Execution) postHook(h hook, s *Snapshot) (mine bool) {
	return e.hasHook(h) && e.post(report{hook: h, s: s})
}

// postLog queues a record for the logger. mine is the result of post; it is false if there is no logger, and then
// nothing is queued.
func (e *Execution) postLog(level slog.Level, msg string, attrs ...slog.Attr) (mine bool) {
	return e.log != nil && e.post(report{record: &record{level, msg, attrs}})
}

// wake ends the wait in waitUntil, if there is one. The cell is locked.
func (e *Execution) wake() {
	if e.wait != nil {
		close(e.wait)
		e.wait = nil
	}
}

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

// mostReports is how many reports may wait before reports of moments, such as NearIdle, are dropped.
const mostReports = 64

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

// hasHook reports whether anybody has set the hook.
func (e *Execution) hasHook(h hook) bool {
	r := e.reports
	return r != nil && (isSet(h, e.hooks) || r.watch != nil && isSet(h, r.watch.hooks))
}

// callersContext is the caller's context with what hooks have added.
func (e *Execution) callersContext() context.Context {
	if r := e.reports; r != nil && r.caller != nil {
		return r.caller
	}
	return e.caller
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

// postHook is post for a hook. It reports false if the hook is not set.
func (e *Execution) postHook(h hook, s *Snapshot) (mine bool) {
	return e.hasHook(h) && e.post(report{hook: h, s: s})
}

// postLog is post for a record. It reports false if there is no logger.
func (e *Execution) postLog(level slog.Level, msg string, attrs ...slog.Attr) (mine bool) {
	return e.log != nil && e.post(report{record: &record{level, msg, attrs}})
}

// wake ends waitUntil. The cell is locked.
func (e *Execution) wake() {
	if e.wait != nil {
		close(e.wait)
		e.wait = nil
	}
}

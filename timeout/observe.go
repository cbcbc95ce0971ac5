package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// This file is for executions whose limits are judged and reported, and not enforced
// (SPEC 3.18).

// WithObserveOnly checks the limits but enforces none. It is for tools whose heartbeats are not yet
// known. When a limit would have fired, at most once for each limit, the execution logs a line
// and calls the hook Exceeded, both with the [*Error] that Run would have returned. At the end it
// logs the idle limit, or the total, that would have sufficed. Each limit is judged by itself,
// whether or not the other has been exceeded.
//
// The limits neither cancel the function's context nor show as its Deadline. The end of the caller's
// context, even by its deadline, stops the function as always, with a grace, and so does
// [Execution.Abort]. The limits of nested executions are enforced.
//
// All values that WithObserveOnly returns are equal and differ from every other Option, so == finds
// one among options.
func WithObserveOnly() Setting { return observeOnly{} }

type observeOnly struct{}

func (observeOnly) apply(s *settings) { s.observe = true }

func (observeOnly) setting() {}

// reportExceeded reports the limits that have been exceeded and not been reported yet. The caller holds no
// lock. At the end, reportExceeded waits for another goroutine in it, so that its reports come before
// Finished: while that goroutine takes a stack, but not for hooks.
func (e *Execution) reportExceeded() (mine bool) {
	o := e.observing
	o.reporting.Lock()
	defer o.reporting.Unlock()
	e.cell.Lock()
	all := o.unreported
	o.unreported = nil
	e.cell.Unlock()
	for _, seen := range all {
		out := new(Error)
		*out = *seen // a copy: the snapshots have the original
		if e.showsStack(out.Kind) {
			out.Stack = e.stack(&sampler, budgetBeforeCancel)
		}
		attrs := []slog.Attr{slog.Any("error", out)}
		if out.Stack != nil {
			attrs = append(attrs, slog.String("stack", string(out.Stack)))
		}
		mine = e.postLog(slog.LevelWarn, "tool would have been stopped: its limits are only observed", attrs...) || mine
		s := e.snapshot(out)
		s.Stack = out.Stack
		mine = e.postHook(hookExceeded, &s) || mine
	}
	return mine
}

// logObserved queues a record, at the end, with the limits that would have sufficed. mine is the result of post.
func (e *Execution) logObserved(s *Snapshot) (mine bool) {
	if s.Observed == nil {
		return false
	}
	attrs := []slog.Attr{
		slog.Any("observed", s.Observed),
		slog.Duration("elapsed", human.Duration(s.Elapsed)),
		slog.Duration("longest_gap", human.Duration(s.LongestGap)),
		errorAttr(s.Err),
	}
	if e.observing.idle {
		attrs = append(attrs, slog.Duration("idle_needed", limitAbove(s.LongestGap)))
	}
	if e.observing.total {
		attrs = append(attrs, slog.Duration("total_needed", limitAbove(s.Elapsed)))
	}
	return e.postLog(slog.LevelWarn, "tool that would have been stopped has ended", attrs...)
}

// limitAbove returns the smallest limit, in whole seconds, or in milliseconds below one, that does not
// fire after d.
func limitAbove(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d/unit + 1) * unit
}

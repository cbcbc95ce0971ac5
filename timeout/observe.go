package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// This file implements executions whose limits are checked and reported, but not enforced (SPEC 3.18).

// WithObserveOnly checks the limits but enforces none. It is for tools whose intervals between heartbeats have not
// been measured yet. When a limit would have fired, at most once for each limit, the execution logs a warning and
// calls the hook Exceeded, both with the [*Error] that Run would have returned. At the end it logs, for each limit
// that would have fired, the value that would have sufficed. Each limit is checked independently of the other.
//
// The limits neither cancel the function's context nor set its Deadline. The end of the caller's context, even by
// its deadline, stops the function as always, with a grace, and so do TOOL_DEADLINE and [Execution.Abort]. The
// limits of nested executions are enforced.
//
// All values that WithObserveOnly returns are equal and differ from every other Option, so that == finds them in a
// list of options.
func WithObserveOnly() Setting { return observeOnly{} }

type observeOnly struct{}

func (observeOnly) apply(s *settings) { s.observe = true }

func (observeOnly) setting() {}

// reportExceeded reports the exceeded limits that have not been reported yet. mine is the result of post. The caller
// holds no lock. A call waits for one in progress on another goroutine, which may be taking a stack but waits for no
// hook. So at the end these reports precede Finished.
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
		*out = *seen // a copy, because snapshots refer to the original
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

// logObserved queues a record, at the end, with the limits that would have sufficed. mine is the result of post; it
// is false if no limit was exceeded.
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

// limitAbove returns the smallest limit greater than d, in whole seconds, or in whole milliseconds if d is less than
// a second.
func limitAbove(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d/unit + 1) * unit
}

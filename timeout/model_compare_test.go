package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// dates are the instants to which the heartbeats seem to have been dated.
func (d *driver) dates() (dates []time.Duration) {
	for _, o := range d.seen {
		if !o.called {
			continue
		}
		dates = append(dates, o.last)
		for _, e := range o.exceeded {
			dates = append(dates, o.start+e.Elapsed-e.SinceBeat)
		}
		for _, err := range []error{o.err, o.cause} {
			var e *timeout.Error
			if errors.As(err, &e) {
				dates = append(dates, o.start+e.Elapsed-e.SinceBeat)
			}
		}
	}
	return dates
}

var sentinels = []struct {
	err  error
	kind func(timeout.Kind) bool
}{
	{timeout.ErrIdle, func(k timeout.Kind) bool { return k == timeout.KindIdle }},
	{timeout.ErrTotal, func(k timeout.Kind) bool { return k == timeout.KindTotal }},
	{timeout.ErrAborted, func(k timeout.Kind) bool { return k == timeout.KindAborted }},
	{context.DeadlineExceeded, func(k timeout.Kind) bool { return k != timeout.KindAborted }},
	{context.Canceled, func(k timeout.Kind) bool { return k == timeout.KindAborted }},
}

// compare returns the first difference between what the model says of an execution and
// what was seen.
func (d *driver) compare(e *simulated, final bool) string {
	sc, o := e.script, d.seen[e.id]
	want := e.outcome
	var diffs []string
	differ := func(what string, got, want any) {
		if got != want {
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	differ("function called", o.called, want.called)
	if final {
		differ("function finished", o.finished, want.finished)
		differ("instant at which the function saw its context done", o.doneAt, want.doneAt)
	}
	differ("Run returned", o.over, true)
	differ("instant at which Run returned", o.at, want.at)
	report := func() string {
		if len(diffs) == 0 {
			return ""
		}
		return fmt.Sprintf("execution %d: %s", sc.id, strings.Join(diffs, "\n    "))
	}
	between := func(what string, got, low, high time.Duration) {
		if got < low || got > high {
			differ(what, got, fmt.Sprintf("%v to %v", low, high))
		}
	}
	if final && sc.hooks {
		calls := hookCalls{}
		if want.called {
			calls.started, calls.finished = 1, 1
		}
		if want.abandoned {
			calls.abandoned, calls.returned = 1, 1
		}
		if want.stopped && want.called && (want.kind == timeout.KindTotal || want.kind == timeout.KindIdle) {
			calls.exceeded = 1
		}
		if e.observe {
			calls.exceeded = 0
			differ("number of limits exceeded", len(o.exceeded), len(e.exceeded))
			for i, x := range e.exceeded {
				if i < len(o.exceeded) {
					differ("limit exceeded", o.exceeded[i].Kind, x.kind)
					differ("instant at which it was", o.start+o.exceeded[i].Elapsed, x.at)
					differ("instant at which that was reported", o.exceededAt[i], x.at)
				}
			}
			differ("Observed", o.observed != nil, len(e.exceeded) > 0)
		}
		differ("hooks", o.calls, calls)
		if len(e.crowd) <= 100 && e.idle%5 == 0 && !near(o.near, e.mustWarn, e.mayWarn) {
			differ("NearIdle", fmt.Sprint(o.near), fmt.Sprintf("%v, possibly also some of %v", e.mustWarn, e.mayWarn))
		}
	}
	if want.called {
		differ("Deadline", o.deadline, e.due)
		between("Monitor.Last", o.last, want.lastLow, want.lastHigh)
		between("Monitor.Count", time.Duration(o.count), time.Duration(want.countLow), time.Duration(want.countHigh))
		if final {
			between("Monitor.Count, later,", time.Duration(o.finalCount), time.Duration(o.count), time.Duration(o.count))
		}
	}
	value := 0
	if sc.do && want.called && !want.abandoned {
		value = 100 + sc.id
	}
	differ("value of Do", o.value, value)
	if !want.stopped {
		differ("error", o.err, o.returned)
		return report()
	}
	err, ok := o.err.(*timeout.Error)
	if !ok {
		differ("error", fmt.Sprintf("%T: %v", o.err, o.err), want.kind)
		return report()
	}
	if want.kind == 0 { // both is right
		want.kind = err.Kind
	}
	differ("Kind", err.Kind, want.kind)
	differ("Limit", err.Limit, want.limit)
	differ("Elapsed", err.Elapsed, want.elapsed)
	between("SinceBeat", err.SinceBeat, want.sinceLow, want.since)
	between("LongestGap", err.LongestGap, want.gapLow, want.gap)
	between("Beats", time.Duration(err.Beats), time.Duration(want.low), time.Duration(want.high))
	differ("Abandoned", err.Abandoned, want.abandoned)
	differ("Tool", err.Tool, fmt.Sprint("tool", sc.id))
	differ("Error()", err.Error(), message(err, e.cut))
	differ("Timeout()", err.Timeout(), want.kind != timeout.KindAborted)
	differ("ExitCode", timeout.ExitCode(err), map[bool]int{true: 124, false: 130}[want.kind != timeout.KindAborted])
	for _, s := range sentinels {
		differ(fmt.Sprintf("errors.Is(%v)", s.err), errors.Is(err, s.err), s.kind(want.kind))
	}
	var own *modelError
	var returned error
	if !want.abandoned && want.called {
		returned = o.returned
	}
	differ("Err", err.Err, returned)
	differ("errors.Is(errModelOwn)", errors.Is(err, errModelOwn), returned != nil && errors.Is(returned, errModelOwn))
	differ("errors.As(modelError)", errors.As(err, &own), returned != nil && errors.Is(returned, errModelOwn))
	if want.kind == timeout.KindAborted && want.called {
		var cause error = errModelCaller
		if e.around != nil {
			cause = d.seen[e.around.id].ctxCause
		}
		differ("Cause", err.Cause, cause)
		differ("errors.Is(Cause)", errors.Is(err, cause), true)
	}
	if o.doneAt >= 0 {
		cause, ok := o.cause.(*timeout.Error)
		wantErr := context.DeadlineExceeded
		if want.kind == timeout.KindAborted && (!ok || !cause.Timeout()) {
			wantErr = context.Canceled
		}
		differ("Err of the context", o.ctxErr, wantErr)
		if want.kind == timeout.KindAborted {
			differ("context.Cause", o.cause, err.Cause)
		} else if !ok {
			differ("context.Cause", o.cause, err.Kind)
		} else {
			c := *err
			c.Abandoned, c.Err = false, nil
			differ("context.Cause", fmt.Sprintf("%+v", fields(cause)), fmt.Sprintf("%+v", fields(&c)))
		}
	}
	return report()
}

// near reports whether got is must and any of may, all of them ascending.
func near(got, must, may []time.Duration) bool {
	for _, at := range may {
		if len(got) > 0 && got[0] == at {
			got = got[1:]
		} else if slices.Contains(must, at) {
			return false
		}
	}
	return len(got) == 0
}

// fields leaves out the stack, which is not of interest here.
func fields(e *timeout.Error) timeout.Error {
	c := *e
	c.Stack = nil
	if c.Kind == timeout.KindTotal {
		c.Cause = nil // whether the caller's deadline has come is not known yet
	}
	return c
}

// message is what SPEC 3.1, 3.2 and 3.3 say; left says that the total is what was left of
// a caller's deadline.
func message(e *timeout.Error, left bool) string {
	limit := e.Limit
	if left && e.Kind == timeout.KindTotal && limit > 0 {
		limit = max((limit+time.Millisecond/2)/time.Millisecond*time.Millisecond, time.Millisecond)
	}
	sec := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d", limit/time.Second, limit%time.Second), "0"), ".")
	switch e.Kind {
	case timeout.KindIdle:
		return "No progress for " + sec + "s (idle timeout). Tool should call heartbeat() during long work."
	case timeout.KindTotal:
		return "Tool exceeded wall-clock limit of " + sec + "s."
	}
	return e.Error()
}

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

// rules judge an execution, each by what the documentation promises. Those of runs judge the whole.
var rules = []func(*run, *seen){
	idleFiresWhenDue, totalFiresWhenDue, abortsAreAborts, startsOnlyWhere, oneOutcome, inTimeIsNoTimeout, returnsByTheGrace,
	figures, messages, panicsReachTheCaller, showsTheTotal, nothingAfterTheEnd, observesOnce, closesAtTheReserve,
	saysWhatIsLeft, callsHooks, hooksAreCalledInOrder, warnsNearIdle, snapshots,
}

// judge returns what was wrong about a run.
func (r *run) judge() []string {
	for _, o := range r.seen {
		if o.script != nil && o.over {
			r.settle(o)
		}
	}
	for _, o := range r.seen {
		if o.script == nil || !o.over {
			continue
		}
		for _, rule := range rules {
			rule(r, o)
		}
	}
	asksWhenDue(r)
	if len(r.left) > 0 { // Guarantee 9, SPEC 3.15.
		r.wrong = append(r.wrong, fmt.Sprint("guarantee 9: left in the end: ", r.left))
	}
	slices.Sort(r.wrong)
	return slices.Compact(r.wrong)
}

func (r *run) bad(o *seen, rule, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf("%s: execution %d: %s", rule, o.id, fmt.Sprintf(format, args...)))
}

// settle fills in what follows from what was seen.
func (r *run) settle(o *seen) {
	o.begun = o.called
	left := o.finishedAt // where the function was not called: when a hook has ended its goroutine
	for _, c := range o.calls {
		if c.hook < 0 {
			continue
		}
		o.begun = true
		if !o.called && c.hook <= hookStarted && r.act(o, c).how == goexits {
			left = min(left, c.end)
		}
	}
	o.left = left
	e, ok := o.err.(*timeout.Error)
	if !ok && o.panicked != nil {
		ok = errors.As(o.last.Err, &e)
	}
	if ok && e.Tool == tool(o.id) && e != o.returned {
		o.stop = e
	}
	o.end = left
	if o.stop != nil {
		o.end = o.start + o.stop.Elapsed
	}
	// Where it was stopped the numbers are those of that instant, at which a beat is too late for the idle limit.
	o.ties = len(r.events)
	if o.stop != nil {
		o.ties = beside
		if o.stop.Kind == timeout.ErrIdle {
			o.ties = before
		}
	}
}

func (r *run) act(o *seen, c *call) act {
	switch {
	case c.hook < 0:
		return *o.logger
	case c.who == "own":
		return o.hooks.acts[c.hook]
	}
	var i int
	fmt.Sscanf(c.who, "watcher %d", &i)
	return r.watchers[i].manners.acts[c.hook]
}

// kind is that of the stop, 0 if there was none.
func (o *seen) kind() timeout.Kind {
	if o.stop == nil {
		return 0
	}
	return o.stop.Kind
}

// Guarantees 1, 8, SPEC 3.1, 3.5, 4.2, 4.4, 4.6, 6.12: idle fires at the last sign of life + the limit, not a nanosecond earlier or
// later. Beats and holds within count; while it is held it does not fire.
func idleFiresWhenDue(r *run, o *seen) {
	if !o.begun || o.observe {
		return
	}
	l := r.life(o, o.end, o.ties)
	lo, hi := l.judged()
	switch {
	case l.open:
	case l.overdue != "":
		r.bad(o, "SPEC 3.1", "%s", l.overdue)
	case o.kind() == timeout.ErrIdle && (o.end < lo || o.end > hi):
		r.bad(o, "SPEC 3.5", "idle fired at %v, due at %v to %v", o.end, lo, hi)
	case o.kind() == 0 && o.end >= hi, o.end > hi:
		r.bad(o, "SPEC 3.1", "ended at %v, but idle was due at %v", o.end, hi)
	}
}

// Guarantees 1 and 6, SPEC 3.2, 3.4, 3.5, 3.6, 3.12: the total fires when it is due, whatever has beaten, and wins a tie. The
// deadline of the caller, of an enclosing execution or of the environment (SPEC 18.1) is a smaller total, and brings its
// cause with it.
func totalFiresWhenDue(r *run, o *seen) {
	if !o.begun {
		return
	}
	at, limit, borrowed := r.cap(o)
	tied := false // an enclosing execution has ended at that instant, and its cause may be the first
	for x := o.around; x != nil; x = x.around {
		tied = tied || x.end == at
	}
	switch {
	case o.kind() != timeout.ErrTotal:
		if o.end > at || o.end == at && o.kind() != timeout.ErrAborted {
			r.bad(o, "SPEC 3.2", "ended with %v at %v, but the total was due at %v", o.kind(), o.end, at)
		}
	case o.end != at:
		r.bad(o, "SPEC 3.5", "the total fired at %v, due at %v", o.end, at)
	case o.stop.Limit != limit:
		r.bad(o, "SPEC 3.12", "the limit is %v, want %v", o.stop.Limit, limit)
	case errors.Is(o.err, errBudget) != borrowed && !(borrowed && (tied || r.clocked(o))) && r.caller.cancel != at && o.panicked == nil && !errors.Is(o.returned, errBudget):
		r.bad(o, "SPEC 3.12", "the caller's deadline: %v, its cause in the error: %v", borrowed, !borrowed)
	}
}

// stopsFrom are the causes of aborts that o has had at an instant, and the first instant of one that counts.
func (r *run) stopsFrom(o *seen, at time.Duration) (causes []error, first time.Duration) {
	first = never
	from := func(t time.Duration, cause error) {
		t = max(t, o.start)
		if first = min(first, t); t == at {
			causes = append(causes, cause)
		}
	}
	for _, h := range o.stops {
		if h.ok {
			from(h.at, h.cause)
		}
	}
	switch {
	case o.around == nil && r.caller.cancel != never:
		from(r.caller.cancel, errModelCaller)
	case o.around != nil && o.around.stop != nil:
		from(o.around.end, o.around.cause)
	}
	return causes, first
}

// Guarantee 5, SPEC 3.11, 3.4: an abort stops at its instant, with its cause, and is none unless somebody has aborted.
func abortsAreAborts(r *run, o *seen) {
	if !o.begun {
		return
	}
	causes, first := r.stopsFrom(o, o.end)
	if first < o.end {
		r.bad(o, "SPEC 3.11", "aborted at %v, and ended with %v at %v", first, o.kind(), o.end)
	}
	for _, h := range o.stops {
		if h.ok && (o.kind() != timeout.ErrAborted || h.at != o.end) {
			r.bad(o, "guarantee 5", "Abort has stopped it at %v, but it ended with %v at %v", h.at, o.kind(), o.end)
		}
		if !h.ok && h.at >= o.start && h.at < o.end {
			r.bad(o, "guarantee 5", "Abort has refused at %v, before the end at %v", h.at, o.end)
		}
	}
	if o.kind() != timeout.ErrAborted {
		return
	}
	if !slices.ContainsFunc(causes, func(c error) bool {
		return o.stop.Cause == c || c == nil && o.stop.Cause.Error() == "stopped by hand"
	}) {
		r.bad(o, "guarantee 5", "aborted at %v with the cause %v, want one of %v", o.end, o.stop.Cause, causes)
	}
	if o.panicked == nil && o.stop.Cause != context.DeadlineExceeded && !errors.Is(o.err, o.stop.Cause) { // an abort is no timeout
		r.bad(o, "SPEC 3.11", "the cause %v is not in the error", o.stop.Cause)
	}
}

// SPEC 3.11, 3.12, 3.21: under a context that is over, or with less time than it needs, a function is not started.
func startsOnlyWhere(r *run, o *seen) {
	at, _, _ := r.cap(o)
	over := never
	switch {
	case o.around == nil:
		over = min(r.caller.cancel, max(r.caller.deadline, 0))
		if r.caller.cancel == 0 || r.caller.deadline <= 0 {
			over = -1
		}
	case o.around.stop != nil:
		over = o.around.end
	case o.around.finished:
		over = o.around.finishedAt
	}
	need := o.need > 0 && at != never && at-o.start < o.need
	if o.begun {
		if over < o.start || need || at <= o.start && at != o.start {
			r.bad(o, "SPEC 3.11", "started at %v, when the context was over since %v (total due at %v, needs %v)", o.start, over, at, o.need)
		}
		return
	}
	e, ok := o.err.(*timeout.Error)
	if !ok {
		r.bad(o, "SPEC 3.11", "not started, and the error is %v", o.err)
		return
	}
	switch {
	case over > o.start && at > o.start && !need:
		r.bad(o, "SPEC 3.11", "not started at %v: %v", o.start, o.err)
	case over > o.start && at > o.start:
		if e.Kind != timeout.ErrTotal || e.Needed != o.need || e.Limit != at-o.start {
			r.bad(o, "SPEC 3.21", "needs %v of %v: %+v", o.need, at-o.start, e)
		}
	case over < o.start && o.around != nil && o.around.stop != nil && o.around.kind() != timeout.ErrTotal && e.Kind != timeout.ErrAborted,
		o.around == nil && r.caller.cancel == 0 && r.caller.deadline > 0 && e.Kind != timeout.ErrAborted,
		o.around == nil && r.caller.cancel != 0 && e.Kind != timeout.ErrTotal:
		r.bad(o, "SPEC 3.11", "not started with %v", e.Kind)
	}
}

// Guarantee 2, SPEC 3.4, 3.8: the error, the context, the hooks and the handle say the same.
func oneOutcome(r *run, o *seen) {
	if !o.begun {
		return
	}
	var finished []*call
	for _, c := range o.calls {
		if c.hook == hookFinished {
			finished = append(finished, c)
		}
	}
	same := func(err error) bool {
		if o.stop == nil || o.panicked != nil {
			var p *timeout.PanicError
			return o.panicked != nil && errors.As(err, &p) || o.panicked == nil && (err == o.err || errors.Is(o.err, timeout.ErrGoexit) && errors.Is(err, timeout.ErrGoexit))
		}
		e, ok := err.(*timeout.Error)
		return ok && e.Kind == o.stop.Kind && e.Elapsed == o.stop.Elapsed && e.Cause == o.stop.Cause && e.Err == o.stop.Err && e.Abandoned == o.stop.Abandoned
	}
	for _, c := range finished {
		if !same(c.snapshot.Err) {
			r.bad(o, "guarantee 2", "Finished says %v (%T), Run %v (%T)", c.snapshot.Err, c.snapshot.Err, o.err, o.err)
		}
		if s := c.snapshot; o.stop != nil && (s.Elapsed != o.stop.Elapsed || s.LongestGap != o.stop.LongestGap || s.Beats != o.stop.Beats || s.Detail != o.stop.Detail) {
			r.bad(o, "SPEC 4.7", "Finished has other figures: %+v, %+v", s, o.stop)
		}
		if c.snapshot.Returned != (o.stop == nil && o.returns()) {
			r.bad(o, "SPEC 4.7", "Finished says that the outcome was returned: %v", c.snapshot.Returned)
		}
	}
	for _, c := range o.calls {
		if c.hook == hookExceeded && !o.observe || c.hook >= hookAbandoned {
			if c.ctxErr == nil {
				r.bad(o, "SPEC 4.7", "%s %d got a context that was not cancelled", c.who, c.hook)
			}
		}
		if c.hook == hookExceeded && !o.observe && o.panicked == nil {
			if e := c.snapshot.Err.(*timeout.Error); e == o.err || e.Err != nil || e.Abandoned {
				r.bad(o, "SPEC 4.7", "what Exceeded was told has changed: %+v", e)
			}
		}
	}
	if !o.called {
		return
	}
	if last := o.last; last.State != timeout.StateEnded || last.Elapsed != o.left-o.start || o.stop == nil && !same(last.Err) || o.kind() != kindOf(last.Err, o) || last.Returned != (o.stop == nil && o.returns()) {
		r.bad(o, "SPEC 4.8", "in the end it is %v after %v, with %v, returned: %v", last.State, last.Elapsed, last.Err, last.Returned)
	}
	var cause *timeout.Error
	switch {
	case o.stop == nil && (o.done != context.Canceled || o.cause != context.Canceled):
		r.bad(o, "SPEC 3.15", "in time, but the context has %v and %v", o.done, o.cause)
	case o.kind() == timeout.ErrAborted:
		want := context.Canceled
		if o.around != nil && o.around.stop != nil && o.around.cause == o.cause && o.around.done == context.DeadlineExceeded {
			want = context.DeadlineExceeded
		}
		if o.done != want || o.cause != o.stop.Cause {
			r.bad(o, "SPEC 3.8", "aborted with the cause %v, but the context has %v and %v", o.stop.Cause, o.done, o.cause)
		}
	case o.stop != nil && (o.done != context.DeadlineExceeded || !errors.As(o.cause, &cause) || cause.Kind != o.kind() || cause.Elapsed != o.stop.Elapsed || cause.Tool != o.stop.Tool):
		r.bad(o, "SPEC 3.8", "stopped with %v, but the context has %v and %v", o.kind(), o.done, o.cause)
	}
	if at := max(o.end, o.calledAt); o.cancelledAt != at {
		r.bad(o, "SPEC 3.8", "the context was done at %v, want %v", o.cancelledAt, at)
	}
	if o.doneAt < o.end {
		r.bad(o, "SPEC 3.5", "the function saw its context done at %v, before %v", o.doneAt, o.end)
	}
}

// kindOf is the kind of err as the outcome of o, 0 where that was none of its own.
func kindOf(err error, o *seen) timeout.Kind {
	if e, ok := err.(*timeout.Error); ok && o.stop != nil {
		return e.Kind
	}
	return 0
}

// returns reports whether the function returns, and does not end in another way.
func (o *seen) returns() bool { return o.called && o.result != resultPanic && o.result != resultExit }

// Guarantee 3, SPEC 3.7: a return in time is what Run returns, and one that is late is kept beside the stop.
func inTimeIsNoTimeout(r *run, o *seen) {
	if !o.begun || o.panicked != nil {
		return
	}
	want := 0
	if o.do && o.returns() && (o.stop == nil || !o.stop.Abandoned) {
		want = 100 + o.id
	}
	if o.value != want {
		r.bad(o, "SPEC 3.7", "value %d, want %d", o.value, want)
	}
	switch {
	case o.stop == nil && o.returns() && o.err != o.returned:
		r.bad(o, "guarantee 3", "it has returned %v at %v, and Run %v", o.returned, o.finishedAt, o.err)
	case o.stop != nil && o.stop.Abandoned && o.stop.Err != nil,
		o.stop != nil && !o.stop.Abandoned && o.returns() && o.stop.Err != o.returned:
		r.bad(o, "SPEC 3.7", "it has returned %v, and the error has %v", o.returned, o.stop.Err)
	}
	if o.stop != nil && o.left < o.end {
		r.bad(o, "guarantee 3", "it has returned at %v, and was stopped at %v", o.left, o.end)
	}
}

// Guarantee 4, SPEC 2.2, 3.9, 3.10, 3.24: Run returns when the function has, or a grace after the stop without it; and then waits for
// hooks and logger, but for no more than a grace after they have begun.
func returnsByTheGrace(r *run, o *seen) {
	if !o.begun {
		if o.at > o.start && (o.logger == nil || o.at > later(o.start, 7*time.Second) && o.at > later(o.start, o.limits().Grace)) {
			r.bad(o, "SPEC 3.11", "not started, and returned %v later", o.at-o.start)
		}
		return
	}
	end := o.left
	grace := o.limits().Grace
	if o.stop != nil {
		over := later(o.end, grace)
		end = min(end, over)
		if o.left < over && o.stop.Abandoned || o.left > over && !o.stop.Abandoned {
			r.bad(o, "SPEC 3.9", "stopped at %v with a grace of %v, ended at %v, abandoned: %v", o.end, grace, o.left, o.stop.Abandoned)
		}
	}
	// Until when reports were delivered that Run waits for, and when that period of delivery may have begun. An event of a
	// function that was abandoned may prolong it.
	patience := max(grace, 100*time.Millisecond)
	busy, since := o.start, []time.Duration{o.start}
	var told []time.Duration
	for _, c := range o.calls {
		if c.at >= busy && busy >= end {
			told = append(told, busy)
			if c.at > busy || c.hook == hookReturned || strings.HasPrefix(c.text, "abandoned tool ") {
				break
			}
		}
		if c.at > busy {
			since = since[:0]
		}
		if c.at >= busy {
			since = append(since, c.at)
		}
		busy = max(busy, c.end)
	}
	if busy < end {
		busy, since = end, []time.Duration{end}
	}
	if busy == end {
		since = append(since, end)
	}
	told = append(told, busy)
	abandoned := false
	for _, c := range o.calls {
		if abandoned = abandoned || c.hook == hookReturned || strings.HasPrefix(c.text, "abandoned tool "); abandoned {
			told = append(told, c.end)
		}
	}
	late := func(from time.Duration) time.Duration { return max(end, later(from, patience)) }
	unreported := o.stop != nil && o.stop.Unreported
	for _, from := range since {
		for _, busy := range told {
			until := late(from)
			if o.at == busy && busy <= until && !unreported || o.at == until && busy >= until && (o.stop == nil || unreported || o.panicked != nil) {
				return
			}
		}
	}
	r.bad(o, "guarantee 4", "Run returned at %v, unreported: %v; the function was over at %v, the reports at %v, and were begun at %v", o.at, unreported, end, told, since)
}

// SPEC 3.17, 4.5, 4.7: the figures of a stop are those of its instant.
func figures(r *run, o *seen) {
	if o.stop == nil || !o.begun {
		return
	}
	l := r.life(o, o.end, o.ties)
	if l.open {
		return
	}
	e := o.stop
	between := func(what string, got, low, high time.Duration) {
		if got < low || got > high {
			r.bad(o, "SPEC 4.7", "%s is %v, want %v to %v", what, got, low, high)
		}
	}
	sinceLo, sinceHi := max(o.end-l.lastHi, 0), o.end-l.lastLo
	gapLo, gapHi := l.end(o.end)
	if e.Kind == timeout.ErrIdle {
		sinceLo, gapLo = max(sinceLo, l.idle), max(gapLo, l.idle)
		sinceHi, gapHi = max(sinceHi, l.idle), max(gapHi, l.idle)
	}
	if o.observe && l.exceeded {
		gapHi = max(gapHi, l.idle)
	}
	between("SinceBeat", e.SinceBeat, sinceLo, sinceHi)
	between("LongestGap", e.LongestGap, gapLo, gapHi)
	between("Beats", time.Duration(e.Beats), time.Duration(l.countLo), time.Duration(l.countHi))
	if l := r.life(o, o.end, beside); !l.hasDetail(e.Detail) { // also that of a beat at the instant, which is too late itself
		r.bad(o, "SPEC 3.17", "Detail is %v, want one of %v", e.Detail, l.details)
	}
	if e.Kind == timeout.ErrIdle && e.Limit != l.idle {
		r.bad(o, "SPEC 4.7", "the limit is %v, want %v", e.Limit, l.idle)
	}
}

var sentinels = []struct {
	err  error
	kind func(timeout.Kind) bool
}{
	{timeout.ErrIdle, func(k timeout.Kind) bool { return k == timeout.ErrIdle }},
	{timeout.ErrTotal, func(k timeout.Kind) bool { return k == timeout.ErrTotal }},
	{timeout.ErrAborted, func(k timeout.Kind) bool { return k == timeout.ErrAborted }},
	{context.DeadlineExceeded, func(k timeout.Kind) bool { return k != timeout.ErrAborted }},
	{context.Canceled, func(k timeout.Kind) bool { return k == timeout.ErrAborted }},
}

// Guarantee 5, SPEC 3.1, 3.2, 3.3, 3.19, 5.1, 5.2: texts, codes and what the error is, whatever the function has returned.
func messages(r *run, o *seen) {
	e, ok := o.err.(*timeout.Error)
	if !ok || o.stop == nil && o.begun {
		return
	}
	_, _, cut := r.cap(o)
	if want := message(e, cut); e.Error() != want {
		r.bad(o, "SPEC 3.3", "the text is %q, want %q", e, want)
	}
	code := 124
	if e.Kind == timeout.ErrAborted {
		code = 130
	}
	if timeout.ExitCode(o.err) != code || e.Timeout() != (code == 124) {
		r.bad(o, "SPEC 5.1", "exit code %d, Timeout %v", timeout.ExitCode(o.err), e.Timeout())
	}
	if e.Tool != tool(o.id) {
		r.bad(o, "SPEC 3.19", "the tool is %q", e.Tool)
	}
	for _, s := range sentinels {
		if errors.Is(o.err, s.err) != s.kind(e.Kind) {
			r.bad(o, "guarantee 5", "errors.Is(%v, %v) is %v", o.err, s.err, !s.kind(e.Kind))
		}
	}
	var own *modelError
	if has := e.Err != nil && errors.Is(e.Err, errModelOwn); errors.As(o.err, &own) != has || errors.Is(o.err, errModelOwn) != has {
		r.bad(o, "SPEC 3.7", "the function's error is lost in %v", o.err)
	}
}

// message is what SPEC 3.1, 3.2 and 3.3 say; left says that the total is what was left of
// a caller's deadline.
func message(e *timeout.Error, left bool) string {
	limit := e.Limit
	if left && e.Kind == timeout.ErrTotal && limit > 0 {
		limit = max((limit+time.Millisecond/2)/time.Millisecond*time.Millisecond, time.Millisecond)
	}
	sec := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d", limit/time.Second, limit%time.Second), "0"), ".")
	switch {
	case e.Needed == 0 && e.Kind == timeout.ErrIdle:
		return "No progress for " + sec + "s (idle timeout). Tool should call heartbeat() during long work."
	case e.Needed == 0 && e.Kind == timeout.ErrTotal:
		return "Tool exceeded wall-clock limit of " + sec + "s."
	}
	return e.Error()
}

// Guarantee 7, SPEC 3.13: a panic reaches the caller, or is the error; Goexit is an error.
func panicsReachTheCaller(r *run, o *seen) {
	abandoned := o.stop != nil && o.stop.Abandoned
	panics := o.called && o.result == resultPanic && !abandoned
	if (o.panicked != nil) != (panics && !o.recovers) {
		r.bad(o, "SPEC 3.13", "Run panicked with %v", o.panicked)
	}
	if err, ok := o.panicked.(error); panics && !o.recovers && (!ok || o.id%2 == 0 && err != errModelOwn || o.id%2 == 1 && !strings.HasPrefix(err.Error(), "boom")) {
		r.bad(o, "SPEC 3.13", "Run panicked with %v", o.panicked)
	}
	var p *timeout.PanicError
	if panics && o.recovers && (!errors.As(o.err, &p) || o.id%2 == 1 && p.Tool != tool(o.id) || len(p.Stack) == 0) { // errors may pass through
		r.bad(o, "SPEC 3.13", "it has panicked, and the error is %v", o.err)
	}
	exits := o.called && o.result == resultExit && !abandoned || !o.called && o.begun && o.left != never && o.stop == nil
	if exits && !errors.Is(o.err, timeout.ErrGoexit) {
		r.bad(o, "SPEC 3.13", "its goroutine has ended, and the error is %v", o.err)
	}
}

// SPEC 3.14, 2.1, 3.18: the context shows the total that is enforced, and no other.
func showsTheTotal(r *run, o *seen) {
	if at, _, _ := r.cap(o); o.called && o.deadline != at && !(o.clocked && o.deadline-at == o.start) {
		r.bad(o, "SPEC 3.14", "the deadline is %v, want %v", o.deadline, at)
	}
}

// SPEC 3.15: a beat after the end does nothing. At the instant of the end, one may come from a function that is abandoned
// there, its own or a nested one.
func nothingAfterTheEnd(r *run, o *seen) {
	aside := slices.ContainsFunc(r.events, func(e event) bool { return e.at == o.at && e.aside })
	abandoned := slices.ContainsFunc(r.seen, func(x *seen) bool { return x.at == o.at && x.stop != nil && x.stop.Abandoned })
	if o.called && o.calledAt < o.at && o.later > o.count && !aside && !abandoned {
		r.bad(o, "SPEC 3.15", "%d beats after the end", o.later-o.count)
	}
}

// Guarantee 13, SPEC 3.18: limits that are only observed are judged to the nanosecond, each is reported once, and nothing else comes of it.
func observesOnce(r *run, o *seen) {
	if !o.begun || !o.observe {
		return
	}
	if o.kind() == timeout.ErrIdle {
		r.bad(o, "SPEC 3.18", "stopped by its idle limit")
	}
	l := r.life(o, o.end, o.ties)
	l.exceed(o.end)
	if o.stop != nil && o.end <= l.exceedHi {
		l.exceeded = false // the stop was at the same instant
	}
	total := never
	if c := o.limits(); c.Total > 0 {
		total = later(o.start, c.Total)
	}
	if l.open {
		return
	}
	for _, who := range o.listeners() {
		var idle, totals int
		for _, c := range o.calls {
			if c.who != who || c.hook != hookExceeded {
				continue
			}
			e := c.snapshot.Err.(*timeout.Error)
			at := o.start + e.Elapsed
			switch e.Kind {
			case timeout.ErrIdle:
				if idle++; at < l.exceedLo || at > l.exceedHi {
					r.bad(o, "SPEC 3.18", "idle is said to be exceeded at %v, want %v to %v", at, l.exceedLo, l.exceedHi)
				}
			case timeout.ErrTotal:
				if totals++; at != total {
					r.bad(o, "SPEC 3.18", "the total is said to be exceeded at %v, want %v", at, total)
				}
			}
			if !c.snapshot.ObserveOnly || c.snapshot.Observed == nil {
				r.bad(o, "SPEC 3.18", "%+v", c.snapshot)
			}
		}
		if idle > 1 || totals > 1 || idle == 0 && l.exceeded || totals == 0 && (total < o.end || total == o.end && o.stop == nil) {
			r.bad(o, "SPEC 3.18", "%s: idle is said to be exceeded %d times, the total %d times; want idle %v at %v, total at %v, end at %v",
				who, idle, totals, l.exceeded, l.exceedHi, total, o.end)
		}
	}
}

// closing is when the execution is closing, or never, and whether that is sure, which it is not at the end.
func (r *run) closingAt(o *seen) (at time.Duration, sure bool) {
	at, sure = never, true
	if c, _, _ := r.cap(o); o.limits().Reserve > 0 && (c != never || o.limits().Total > 0 && !o.observe) {
		at = max(c-o.limits().Reserve, o.start)
	}
	if o.around != nil {
		outer, s := r.closingAt(o.around)
		if outer = max(outer, o.start); outer < at {
			at, sure = outer, s
		}
	}
	for _, h := range o.closing {
		if h.ok && h.at < at {
			at, sure = h.at, true
		}
	}
	if at > o.end {
		return never, true
	}
	return at, sure && at < o.end
}

// Guarantee 12, SPEC 3.20, 3.22: an execution is closing when its reserve is reached, when an enclosing one is, or when it is told to. The
// channel, the hook and the snapshots say so, the hook once, and nothing is cancelled.
func closesAtTheReserve(r *run, o *seen) {
	if !o.begun {
		return
	}
	at, sure := r.closingAt(o)
	if o.called {
		got := o.closedAt
		if want := max(at, o.calledAt); at != never && got != want && (sure || got != never) || at == never && got != never {
			r.bad(o, "SPEC 3.20", "the channel was closed at %v, want %v", got, at)
		}
	}
	for _, h := range o.closing {
		if h.ok && (h.at > at || h.at > o.end) || !h.ok && h.at < at && h.at < o.end {
			r.bad(o, "SPEC 3.22", "BeginClosing at %v says %v; closing at %v", h.at, h.ok, at)
		}
	}
	for _, who := range o.listeners() {
		n := 0
		for _, c := range o.calls {
			if c.who == who && c.hook == hookClosing {
				n++
			}
		}
		if n > 1 || n == 0 && at != never && sure || n == 1 && at == never {
			r.bad(o, "SPEC 3.20", "%s: Closing was called %d times; closing at %v, sure: %v", who, n, at, sure)
		}
	}
	for _, s := range o.snapshots() {
		if r.clocked(o) {
			break // instants of two clocks cannot be compared
		}
		if t := o.start + s.Elapsed; at != t && s.Closing != (at < t) && (sure || s.Closing && at > t) {
			r.bad(o, "SPEC 3.20", "the snapshot at %v says closing: %v, want since %v", t, s.Closing, at)
		}
	}
}

func (o *seen) snapshots() (all []timeout.Snapshot) {
	for _, c := range o.calls {
		if c.hook >= 0 {
			all = append(all, c.snapshot)
		}
	}
	for _, l := range o.looks {
		all = append(all, l.snapshot)
	}
	return all
}

// endless reports whether a total ends with time itself, of which the rest is not exact here.
func (o *seen) endless() bool { return o != nil && (o.config.Total > never/2 || o.around.endless()) }

// SPEC 3.21: what is left can be asked at any time.
func saysWhatIsLeft(r *run, o *seen) {
	at, _, _ := r.cap(o)
	if o.endless() {
		return
	}
	for _, l := range o.looks {
		if want := max(at-l.at, 0); l.bounded != (at != never) || l.bounded && l.left != want {
			r.bad(o, "SPEC 3.21", "at %v %v is left, %v; the total is due at %v", l.at, l.left, l.bounded, at)
		}
	}
}

// listeners are who has to hear of o: its own hooks, and the watchers that were there when it began.
func (o *seen) listeners() (all []string) {
	for _, c := range o.calls {
		if c.hook >= 0 && !slices.Contains(all, c.who) {
			all = append(all, c.who)
		}
	}
	return all
}

// Guarantees 11 and 13, SPEC 4.7, 4.8: who listens hears of everything, once and in order, from the beginning to the end, and
// nobody else hears anything.
func callsHooks(r *run, o *seen) {
	heard := o.listeners()
	for i, w := range r.watchers {
		who := fmt.Sprint("watcher ", i)
		must, may := w.from < o.start && w.to > o.start, w.from <= o.start && w.to >= o.start
		if w.from == 0 {
			must = w.to > o.start
		}
		if o.begun && must && !slices.Contains(heard, who) || slices.Contains(heard, who) && !may {
			r.bad(o, "guarantee 13", "began at %v, and %s, there from %v to %v, has heard of it: %v", o.start, who, w.from, w.to, slices.Contains(heard, who))
		}
	}
	if o.hooks != nil && o.begun && !slices.Contains(heard, "own") {
		r.bad(o, "SPEC 4.7", "its hooks were not called")
	}
	if !o.begun {
		if len(heard) > 0 {
			r.bad(o, "SPEC 4.7", "not started, and hooks were called")
		}
		return
	}
	for _, who := range heard {
		var names []string
		n := [hookCount]int{}
		for _, c := range o.calls {
			if c.who != who || c.hook < 0 {
				continue
			}
			n[c.hook]++
			if c.hook != hookNearIdle && c.hook != hookClosing && !(o.observe && c.hook == hookExceeded) {
				names = append(names, hookNames[c.hook])
			}
		}
		want := []string{"Context", "Started", "Finished"}
		if n[hookContext] == 0 && !o.called {
			want = want[1:] // a hook before it has ended the goroutine
		}
		if o.stop != nil {
			if o.stop.Timeout() && !o.observe {
				want = slices.Insert(want, len(want)-1, "Exceeded")
			}
			if o.stop.Abandoned {
				want = slices.Insert(want, len(want)-1, "Abandoned")
				if o.left != never || !o.called {
					want = append(want, "Returned")
				}
			}
		}
		if !slices.Equal(names, want) {
			r.bad(o, "SPEC 4.7", "%s has heard of %v, want %v", who, names, want)
		}
	}
}

// SPEC 3.24, 4.7: hooks and log handler are called one after the other, each when its event is, or when the one before it has
// returned; at the start watchers first, and later last.
func hooksAreCalledInOrder(r *run, o *seen) {
	var busy time.Duration
	started := o.start
	for i, c := range o.calls {
		if c.at < busy {
			r.bad(o, "SPEC 3.24", "call %d, %s %d, at %v, before %v", i, c.who, c.hook, c.at, busy)
		}
		posted := never
		switch c.hook {
		case hookContext, hookStarted:
			posted = o.start
			started = c.end
		case hookNearIdle:
			posted = o.start + c.snapshot.Elapsed
		case hookClosing:
			posted, _ = r.closingAt(o)
			posted = max(posted, started)
		case hookExceeded:
			posted = o.start + c.snapshot.Err.(*timeout.Error).Elapsed
		case hookAbandoned:
			posted = later(o.end, o.limits().Grace)
		case hookFinished:
			posted = o.left
			if o.stop != nil {
				posted = min(posted, later(o.end, o.limits().Grace))
			}
		case hookReturned:
			posted = max(o.left, later(o.end, o.limits().Grace))
			if o.left == never {
				posted = c.at // the goroutine of a function that was not called
			}
		default:
			posted = c.at
		}
		if want := max(posted, busy); c.at != want {
			r.bad(o, "SPEC 4.7", "%s %s was called at %v; its event was at %v, the calls before it ended at %v", c.who, c.text, c.at, posted, busy)
		}
		busy = max(busy, c.end)
		if i > 0 && c.hook >= 0 {
			if p := o.calls[i-1]; p.hook == c.hook && (c.hook <= hookStarted && p.who == "own" || c.hook > hookStarted && p.who != "own" && c.who == "own") && c.hook != hookNearIdle && c.hook != hookExceeded {
				r.bad(o, "SPEC 4.7", "hook %d was called for %s after %s", c.hook, c.who, p.who)
			}
		}
	}
	if o.called && o.calledAt != started {
		r.bad(o, "SPEC 3.24", "the function was called at %v, and Started had returned at %v", o.calledAt, started)
	}
}

// SPEC 4.7: NearIdle is called once for each gap of 80 % of the limit.
func warnsNearIdle(r *run, o *seen) {
	if !o.begun {
		return
	}
	l := r.life(o, o.end, o.ties)
	l.end(o.end)
	if l.open || len(l.crowd) > 100 || len(r.probes) > 0 || l.idle > 0 && l.idle/5 == 0 {
		return
	}
	for _, who := range o.listeners() {
		var got []time.Duration
		for _, c := range o.calls {
			if c.who == who && c.hook == hookNearIdle {
				got = append(got, o.start+c.snapshot.Elapsed)
			}
		}
		for _, w := range l.warned {
			if len(got) > 0 && got[0] >= w.lo && got[0] <= w.hi {
				got = got[1:]
			} else if w.sure && w.lo != o.end {
				r.bad(o, "SPEC 4.7", "%s: NearIdle was not called at %v", who, w.lo)
			}
		}
		if len(got) > 0 {
			r.bad(o, "SPEC 4.7", "%s: NearIdle was called at %v, want %v", who, got, l.warned)
		}
	}
}

// SPEC 4.8: what an execution says of itself at any time.
func snapshots(r *run, o *seen) {
	for _, k := range o.looks {
		s, t := k.snapshot, k.at
		if !o.called || t > o.at {
			continue
		}
		if t < o.end {
			l := r.life(o, t, k.events)
			if l.open {
				continue
			}
			var want []timeout.State
			switch near := l.idle - l.idle/5; {
			case l.held > 0:
				want = []timeout.State{timeout.StateHeld}
			case l.idle > 0 && l.lastLo == l.lastHi && t-l.lastHi >= near:
				want = []timeout.State{timeout.StateNearIdle}
			case l.idle > 0 && t-l.lastLo >= near, l.lastHi > l.lastLo: // in a burst the last may be a little older
				want = []timeout.State{timeout.StateNearIdle, timeout.StateRunning}
			default:
				want = []timeout.State{timeout.StateRunning}
			}
			if !slices.Contains(want, s.State) {
				r.bad(o, "SPEC 4.8", "at %v the state is %v, want %v", t, s.State, want)
			}
			hold := time.Duration(0)
			if l.held > 0 {
				hold = t - l.heldAt
			}
			if s.Hold != hold || s.Held != hold+l.heldFor {
				r.bad(o, "SPEC 4.8", "at %v it is held for %v of %v, want %v of %v", t, s.Hold, s.Held, hold, hold+l.heldFor)
			}
			if s.Elapsed != t-o.start || s.SinceBeat < max(t-l.lastHi, 0) || s.SinceBeat > t-l.lastLo+min(l.lastHi-l.lastLo, time.Millisecond) || s.Beats < l.countLo || s.Beats > l.countHi || !l.hasDetail(s.Detail) || s.Err != nil {
				r.bad(o, "SPEC 4.8", "at %v: %+v; last sign at %v to %v, %d to %d beats", t, s, l.lastLo, l.lastHi, l.countLo, l.countHi)
			}
		} else if t > o.end && s.State < timeout.StateStopping {
			r.bad(o, "SPEC 4.8", "at %v, after the end at %v, the state is %v", t, o.end, s.State)
		}
		want := o.limits()
		total := time.Duration(0)
		if at, _, _ := r.cap(o); at != never {
			total = at - o.start
		}
		if s.Tool != tool(o.id) || s.Limits.Idle != want.Idle || s.ObserveOnly != o.observe || !o.observe && !o.endless() && s.Limits.Total != total {
			r.bad(o, "SPEC 4.8", "%+v", s)
		}
	}
}

// SPEC 6.12: a look is asked for when a limit falls due that nobody has looked at, and then only.
func asksWhenDue(r *run) {
	for _, p := range r.probes {
		if len(slices.Compact(slices.Clone(p.asked))) > len(p.looks)+1 {
			r.wrong = append(r.wrong, fmt.Sprint("SPEC 6.12: looks were asked for at ", p.asked, ", of which ", len(p.looks), " were made"))
		}
	}
}

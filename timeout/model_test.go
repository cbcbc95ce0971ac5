package timeout_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "seed of the first schedule of TestModel; 0 is a random one")
	modelRuns = flag.Int("model.runs", 2500, "number of schedules of TestModel")
)

// TestModel runs random schedules against the engine and against a model of it that
// was written from the documentation alone, and compares what can be seen.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64() >> 16 // short enough to be typed
	}
	for i := range *modelRuns {
		s := generate(seed + uint64(i))
		diff := check(t, s)
		if diff == "" {
			continue
		}
		for tries := 0; tries < 300; {
			smaller := false
			for _, c := range s.simpler() {
				tries++
				if d := check(t, c); d != "" {
					s, diff, smaller = c, d, true
					break
				}
			}
			if !smaller {
				break
			}
		}
		t.Fatalf("go test ./timeout -run 'TestModel$' -model.seed=%d -model.runs=1 # and -count, if it depends on the scheduler\n%s\n%v", seed+uint64(i), diff, s)
	}
}

// check runs a schedule and says how the engine differs from the model. Where the
// documentation leaves more than one result open, it suffices that one agrees. What
// could be anything, or has too many possible results to try them all, passes.
func check(t *testing.T, s *schedule) string {
	t.Helper()
	defer func() {
		if r := recover(); r != nil { // synctest's way to say that something is left
			t.Logf("%v", s)
			panic(r)
		}
	}()
	defer time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("no end:\n%v", s)) }).Stop()
	before := timeout.Abandoned()
	var d *driver
	synctest.Test(t, func(*testing.T) { d = drive(s) })
	if n := timeout.Abandoned() - before; n != 0 {
		return fmt.Sprintf("Abandoned() is %d too high after the last function has returned", n)
	}
	dates := d.dates()
	first, furthest, open := "", time.Duration(0), false
	var choices []choice
	for tries := 0; ; tries++ {
		m := &model{s: s, choices: choices, dates: dates, seen: d.seen, differs: d.compare}
		m.run()
		if m.diff == "" {
			return ""
		}
		open = open || m.open
		if m.now > furthest || first == "" || m.now == furthest && strings.Count(m.diff, "\n") < strings.Count(first, "\n") {
			first, furthest = m.diff, m.now
		}
		choices = m.choices
		for len(choices) > 0 && choices[len(choices)-1].taken+1 == choices[len(choices)-1].of {
			choices = choices[:len(choices)-1]
		}
		if len(choices) == 0 {
			break
		}
		if tries == 5000 {
			return ""
		}
		choices[len(choices)-1].taken++
	}
	if open {
		return ""
	}
	return first
}

// TestModelMock takes simple schedules through the engine on a mock clock, where
// every beat is exact. The mock has no bubble around it, so after each limit the test
// waits in real time; that is why there are few schedules, and no abandonment.
func TestModelMock(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	for i := range uint64(40) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed+i, 1)), caller: caller{never, never}}
		c := g.config()
		c.Grace = never
		s := &schedule{caller: g.caller, root: g.script(c, 0)}
		s.root.steps = slices.DeleteFunc(s.root.steps, func(st step) bool { return st.of != 0 || st.op == opBurst || st.op == opRun })
		s.root.attentive = false
		if diff := mock(s.index(g.scripts)); diff != "" {
			t.Fatalf("go test ./timeout -run TestModelMock -model.seed=%d\n%s\n%v", seed+i, diff, s)
		}
	}
}

// mock gives the first difference. It is a model of its own: with one execution, no
// caller and no races, a few lines say what has to happen.
func mock(s *schedule) string {
	sc := s.root
	clk := clock.NewMock()
	begun, end := make(chan context.Context), make(chan struct{})
	over := make(chan error)
	go func() {
		over <- timeout.Run(context.Background(), func(ctx context.Context) error {
			begun <- ctx
			<-end
			return errModelOwn
		}, sc.config, timeout.WithClock(clk))
	}()
	ctx := <-begun

	limits, _ := sc.config.Normalize()
	total, idle := limits.Total, limits.Idle
	if total == 0 {
		total = never
	}
	if idle == 0 {
		idle = never
	}
	var now, last time.Duration
	var beats uint64
	held, releases := 0, map[int]func(){}
	want := timeout.Kind(0)
	for _, st := range append(sc.steps[:len(sc.steps):len(sc.steps)], step{at: sc.end, op: -1}) {
		due := total
		if held == 0 {
			due = min(due, later(last, idle))
		}
		at := max(now, min(st.at, due))
		clk.Add(at - now)
		now = at
		if due == now {
			if want = timeout.Idle; now == total {
				want = timeout.Total
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				return fmt.Sprintf("no limit fired at %v", now)
			}
			break
		}
		if err := ctx.Err(); err != nil {
			return fmt.Sprintf("at %v: %v", now, context.Cause(ctx))
		}
		switch st.op {
		case opBeat, opMonitor:
			heartbeat.Beat(ctx)
			beats, last = beats+1, now
		case opDetail:
			heartbeat.BeatWith(ctx, st)
			beats, last = beats+1, now
		case opHold:
			releases[st.hold] = heartbeat.Hold(ctx)
			held, last = held+1, now
		case opRelease:
			if release := releases[st.hold]; release != nil {
				release()
				release()
				delete(releases, st.hold)
				held, last = held-1, now
			}
		}
	}
	close(end)
	err := <-over
	if want == 0 {
		if err != errModelOwn {
			return fmt.Sprintf("error %v, want the function's own", err)
		}
		return ""
	}
	e, ok := err.(*timeout.Error)
	if !ok {
		return fmt.Sprintf("error %v, want %v", err, want)
	}
	limit := limits.Idle
	if want == timeout.Total {
		limit = limits.Total
	}
	got := timeout.Error{Kind: e.Kind, Limit: e.Limit, Elapsed: e.Elapsed, SinceBeat: e.SinceBeat, Beats: e.Beats, Err: e.Err}
	if exp := (timeout.Error{Kind: want, Limit: limit, Elapsed: now, SinceBeat: now - last, Beats: beats, Err: errModelOwn}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", exp) {
		return fmt.Sprintf("error %+v\n want %+v", got, exp)
	}
	return ""
}

// dates are the instants to which the heartbeats seem to have been dated.
func (d *driver) dates() (dates []time.Duration) {
	for _, o := range d.seen {
		if !o.called {
			continue
		}
		dates = append(dates, o.last)
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
	{timeout.ErrIdle, func(k timeout.Kind) bool { return k == timeout.Idle }},
	{timeout.ErrTotal, func(k timeout.Kind) bool { return k == timeout.Total }},
	{timeout.ErrAborted, func(k timeout.Kind) bool { return k == timeout.Aborted }},
	{context.DeadlineExceeded, func(k timeout.Kind) bool { return k != timeout.Aborted }},
	{context.Canceled, func(k timeout.Kind) bool { return k == timeout.Aborted }},
}

// compare gives the first difference between what the model says of an execution and
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
	differ("Error()", err.Error(), message(err))
	differ("Timeout()", err.Timeout(), want.kind != timeout.Aborted)
	differ("ExitCode", timeout.ExitCode(err), map[bool]int{true: 124, false: 130}[want.kind != timeout.Aborted])
	for _, s := range sentinels {
		differ(fmt.Sprintf("errors.Is(%v)", s.err), errors.Is(err, s.err), s.kind(want.kind) || errors.Is(err.Cause, s.err))
	}
	var own *modelError
	var returned error
	if !want.abandoned && want.called {
		returned = o.returned
	}
	differ("Err", err.Err, returned)
	differ("errors.Is(errModelOwn)", errors.Is(err, errModelOwn), returned != nil && errors.Is(returned, errModelOwn))
	differ("errors.As(modelError)", errors.As(err, &own), returned != nil && errors.Is(returned, errModelOwn))
	if want.kind == timeout.Aborted && want.called {
		var cause error = errModelCaller
		if e.around != nil {
			cause = d.seen[e.around.id].ctxCause
		}
		differ("Cause", err.Cause, cause)
		differ("errors.Is(Cause)", errors.Is(err, cause), true)
	}
	if o.doneAt >= 0 {
		cause, ok := o.cause.(*timeout.Error)
		if want.kind == timeout.Aborted {
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
	if c.Kind == timeout.Total {
		c.Cause = nil // whether the caller's deadline has come is not known yet
	}
	return c
}

// message is what SPEC 3.1 and 3.2 say.
func message(e *timeout.Error) string {
	sec := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d", e.Limit/time.Second, e.Limit%time.Second), "0"), ".")
	switch e.Kind {
	case timeout.Idle:
		return "No progress for " + sec + "s (idle timeout). Tool should call heartbeat() during long work."
	case timeout.Total:
		return "Tool exceeded wall-clock limit of " + sec + "s."
	}
	return e.Error()
}

// What the documentation does not say of Monitor.Count.
const (
	holdCounts  = 0 // Hold and release are beats, but are not counted
	startCounts = 1 // the start of a nested execution is counted by those around it
)

// A model is a simulation of one schedule. Time goes from one instant at which
// something can happen to the next. At an instant, limits come first: whatever a
// function does then is too late. Then come the functions and the ends of graces, in
// any order. Wherever more than one order is possible, a caller's end coincides with
// something, or a beat may be dated late, choose decides, and check tries all of it.
type model struct {
	s       *schedule
	now     time.Duration
	execs   []*simulated // by id
	started []*simulated // in the order of their start
	holds   map[int]*hold
	order   []*hold
	// What was seen, so that a choice that leads elsewhere is given up at once.
	seen    []*seen
	differs func(e *simulated, final bool) string
	diff    string // the first difference
	open    bool   // there is no telling what is right

	choices []choice
	chosen  int
	dates   []time.Duration // instants to which a beat in a burst may have been dated
}

type choice struct{ taken, of int }

// choose takes the next of the prescribed choices, or else the first possibility.
func (m *model) choose(n int) int {
	if n < 2 {
		return 0
	}
	if m.chosen == len(m.choices) {
		m.choices = append(m.choices, choice{0, n})
	}
	m.chosen++
	return m.choices[m.chosen-1].taken
}

// expect notes a difference, "" being none.
func (m *model) expect(diff string) {
	if m.diff == "" {
		m.diff = diff
	}
}

func (m *model) perhaps() bool { return m.choose(2) == 1 }

// A simulated is an execution: its limits, its heartbeat, its function.
type simulated struct {
	*script
	around *simulated

	start, due         time.Duration // due: when the total is, or never
	limit, idle, grace time.Duration
	foreign            bool // due is the deadline of the caller's context

	last        time.Duration
	made        time.Duration   // when the latest beat was made; last is what it is dated
	gapLow, gap time.Duration   // bounds of the longest, the last not included
	fuzzy       bool            // last may be up to 1 ms later
	crowd       []time.Duration // the latest beats
	low, high   uint64          // bounds of the count
	held        int

	saw     bool // the function knows that its context is done
	stopped bool
	stopAt  time.Duration
	over    bool // Run has returned
	done    bool // the function's context is done
	outcome outcome

	mayWarn, mustWarn []time.Duration // instants of NearIdle

	// The function.
	phase phase
	wake  time.Duration
	next  int // step
	left  int // beats of a burst
	lates int // late steps taken
	sub   *simulated
}

type phase int

const (
	waiting phase = iota
	bursting
	calling // a nested execution
	lingering
	returning
	finished
)

// An outcome is what is compared.
type outcome struct {
	called, stopped                              bool
	kind                                         timeout.Kind
	limit, elapsed, sinceLow, since, gapLow, gap time.Duration
	low, high                                    uint64 // Beats
	countLow, countHigh                          uint64 // Monitor.Count
	abandoned                                    bool
	at, lastLow, lastHigh                        time.Duration // Monitor.Last
	finished                                     bool
	doneAt                                       time.Duration
}

// A hold is in force in some executions, the innermost first.
type hold struct{ on []*simulated }

// later is a + b, but no more than never.
func later(a, b time.Duration) time.Duration {
	if b > never-a {
		return never
	}
	return a + b
}

func (m *model) run() {
	m.execs, m.holds = make([]*simulated, len(m.s.scripts)), map[int]*hold{}
	m.begin(m.s.root, nil)
	for m.instant(); m.diff == ""; m.instant() {
		next := m.nextInstant()
		if next == never {
			break
		}
		m.now = next
	}
	for _, sc := range m.s.scripts {
		if sc != nil && m.execs[sc.id] != nil {
			m.expect(m.differs(m.execs[sc.id], true))
		} else if sc != nil && m.seen[sc.id].over {
			m.expect(fmt.Sprintf("execution %d was reached", sc.id))
		}
	}
}

// begin starts an execution, unless the context that it would get is done.
func (m *model) begin(sc *script, around *simulated) *simulated {
	e := &simulated{script: sc, around: around, start: m.now, last: m.now, made: m.now, due: never}
	m.execs[sc.id] = e
	e.outcome.doneAt = -1
	deadline, done, atOnce := m.s.caller.deadline, m.s.caller.cancel == 0 || m.s.caller.deadline <= 0, false
	if around != nil {
		deadline, done = around.due, around.done
		// At the very instant the context may be seen as done, or not yet.
		atOnce = m.doneAt(around) == m.now
	}
	started := !done || atOnce && around.due > m.now && m.perhaps()
	if m.seen[sc.id].called != started {
		m.expect(fmt.Sprintf("execution %d: function called: %v", sc.id, !started))
	}
	if !started {
		if atOnce && m.perhaps() {
			m.beat(around, startCounts) // it was about to start
		}
		e.over, e.phase = true, finished
		e.outcome.stopped, e.outcome.at = true, m.now
		switch {
		case around == nil && m.s.caller.cancel != 0:
			e.outcome.kind = timeout.Total
		case around == nil && m.s.caller.deadline > 0, around != nil && around.due > m.now:
			e.outcome.kind = timeout.Aborted
		}
		if around != nil && !atOnce {
			around.saw = true
		}
		return e
	}
	c := sc.config
	e.limit, e.idle, e.grace = max(0, c.Total), max(0, c.Idle), max(0, c.Grace)
	if e.grace == 0 {
		e.grace = timeout.DefaultGrace
	}
	if e.limit > 0 {
		e.idle = min(e.idle, e.limit)
		e.due = later(e.start, e.limit)
	}
	if deadline <= e.due && deadline != never {
		e.foreign = true
		e.due, e.limit = deadline, deadline-e.start
	}
	if around != nil {
		m.beat(around, startCounts)
	}
	e.outcome.called = true
	m.started = append(m.started, e)
	m.schedule(e)
	if done {
		m.stop(e, timeout.Aborted, 0)
	}
	return e
}

// doneAt is when the function's context is done, as far as is known by now.
func (m *model) doneAt(e *simulated) time.Duration {
	at := m.s.caller.cancel
	if e.around != nil {
		at = m.doneAt(e.around)
	}
	if e.stopped {
		at = min(at, e.stopAt)
	}
	return at
}

// gaps bounds the longest gap if there is none after now.
func (e *simulated) gaps(now time.Duration) (low, high time.Duration) {
	low, high = now-e.last, now-e.last
	if e.fuzzy || e.last > e.made {
		low, high = now-e.made-time.Millisecond, now-e.made
	}
	return max(low, e.gapLow), max(high, e.gap)
}

// schedule sets the function on the way to its next step.
func (m *model) schedule(e *simulated) {
	e.phase, e.wake = waiting, e.end
	if e.next < len(e.steps) {
		e.wake = e.steps[e.next].at
	}
	e.wake = max(e.wake, m.now)
}

// idleDue is when the idle limit falls due without a further beat.
func (e *simulated) idleDue() time.Duration {
	if e.idle == 0 || e.held > 0 {
		return never
	}
	return later(e.last, e.idle)
}

// nearDue is when 80 % of the idle limit will have passed without a further beat.
func (e *simulated) nearDue() time.Duration {
	if due := e.idleDue(); due != never {
		return due - e.idle/5
	}
	return never
}

func (m *model) nextInstant() time.Duration {
	next := never
	at := func(t time.Duration) {
		if t > m.now {
			next = min(next, t)
		}
	}
	at(m.s.caller.cancel)
	for _, e := range m.started {
		if e.phase != finished {
			at(e.due)
			if e.phase != calling {
				at(e.wake)
			}
		}
		if e.stopped && !e.over {
			at(later(e.stopAt, e.grace))
		}
	}
	for _, e := range m.started {
		if e.stopped || e.over {
			continue
		}
		at(e.nearDue())
		if e.idleDue() <= next {
			m.settle(e, m.dates...)
		}
		at(e.idleDue())
	}
	return next
}

// settle decides how late the last beat is dated, which is one of dates.
func (m *model) settle(e *simulated, dates ...time.Duration) {
	if !e.fuzzy {
		return
	}
	e.fuzzy = false
	fits := []time.Duration{e.last, e.last + time.Millisecond}
	for _, d := range dates {
		if d > e.last && d < e.last+time.Millisecond && !slices.Contains(fits, d) {
			fits = append(fits, d)
		}
	}
	e.last = fits[m.choose(len(fits))]
}

// beat records a beat in e and in those around it, up to the first that has ended.
func (m *model) beat(e *simulated, counts uint64) {
	for c := e; c != nil; c = c.around {
		if c.outcome.abandoned && c.outcome.at == m.now || slices.Contains(m.gracesOver(), c) {
			// Nobody can say how far the beat of a function climbs that is being
			// abandoned at this instant.
			m.open = true
		}
	}
	for ; e != nil && !e.over; e = e.around {
		if e.held == 0 {
			e.gapLow, e.gap = e.gaps(m.now)
		}
		e.fuzzy = e.last > m.now // the one before was dated later than this one is made
		e.last, e.made = m.now, m.now
		e.crowd = append(e.crowd, m.now)
		e.high += counts
		if n := len(e.crowd); n > 100 && m.now-e.crowd[n-101] <= time.Millisecond {
			e.fuzzy = true
		} else {
			e.low += counts
		}
		if e.stopped && e.stopAt == m.now && e.outcome.kind != timeout.Idle {
			// The beat is too late to matter, but it may be in the numbers.
			e.outcome.high = e.high
			e.outcome.sinceLow = 0
			e.outcome.gapLow = min(e.outcome.gapLow, e.gapLow)
		}
	}
}

func (m *model) instant() {
	m.limits()
	// What is near its idle limit is warned of, unless something happens right now.
	near := map[*simulated]time.Duration{}
	for _, e := range m.started {
		if !e.over && (!e.stopped || e.stopAt == m.now) && e.nearDue() == m.now {
			near[e] = e.made
			e.mayWarn = append(e.mayWarn, m.now)
		}
	}
	defer func() {
		for e, made := range near {
			if e.made == made && e.held == 0 && !e.stopped && !e.over {
				e.mustWarn = append(e.mustWarn, m.now)
			}
		}
	}()
	for {
		if m.diff != "" {
			return
		}
		r, g := m.runnable(), m.gracesOver()
		if len(r)+len(g) == 0 {
			return
		}
		if i := m.choose(len(r) + len(g)); i < len(r) {
			m.step(r[i])
		} else {
			e := g[i-len(r)]
			e.outcome.abandoned = true
			m.finish(e)
		}
	}
}

// limits stops what a limit has fallen due for.
func (m *model) limits() {
	for _, e := range m.started {
		if e.stopped || e.over {
			continue
		}
		aborted := m.doneAt(e) == m.now
		switch {
		case e.due <= m.now:
			// The deadline of the context around is e's total, and not an abort,
			// although it also is what ends that context.
			if aborted && !(e.foreign && e.around != nil && e.around.outcome.kind == timeout.Total) && m.perhaps() {
				m.stop(e, timeout.Aborted, 0)
			} else {
				m.stop(e, timeout.Total, e.limit)
			}
		case e.idleDue() <= m.now:
			if aborted && m.perhaps() {
				m.stop(e, timeout.Aborted, 0)
			} else {
				m.stop(e, timeout.Idle, e.idle)
			}
		case aborted:
			m.stop(e, timeout.Aborted, 0)
		}
	}
}

func (m *model) stop(e *simulated, k timeout.Kind, limit time.Duration) {
	m.settle(e, m.dates...)
	e.stopped, e.stopAt, e.done = true, m.now, true
	if at, kind, ok := m.seen[e.id].stop(); k != timeout.Aborted && (!ok || at != m.now || kind != k) || ok && at == m.now && kind != k {
		m.expect(fmt.Sprintf("execution %d: not stopped with %v at %v", e.id, k, m.now))
	}
	o := &e.outcome
	o.stopped, o.kind, o.limit = true, k, limit
	o.elapsed, o.since, o.sinceLow = m.now-e.start, max(0, m.now-e.last), max(0, m.now-e.last)
	o.gapLow, o.gap = e.gapLow, e.gap
	if e.held == 0 {
		o.gapLow, o.gap = e.gaps(m.now)
	}
	o.low, o.high = e.low, e.high
	o.lastLow, o.countLow = e.last, e.low
}

// gracesOver gives the executions whose function is to be abandoned.
func (m *model) gracesOver() []*simulated {
	var out []*simulated
	for _, e := range m.started {
		if e.stopped && !e.over && later(e.stopAt, e.grace) <= m.now {
			out = append(out, e)
		}
	}
	return out
}

// finish lets Run return.
func (m *model) finish(e *simulated) {
	e.over, e.done = true, true
	e.outcome.at = m.now
	fuzzy := e.fuzzy // Last is behind until the burst has ended
	m.settle(e, m.dates...)
	e.outcome.lastHigh, e.outcome.countHigh = e.last, e.high
	if !e.stopped {
		e.outcome.lastLow, e.outcome.countLow = e.last, e.low
	}
	if fuzzy {
		e.outcome.lastLow -= time.Millisecond
	}
	if m.expect(m.differs(e, false)); m.diff != "" {
		return
	}
	m.releaseAll(e)
	if a := e.around; a != nil && a.phase == calling && a.sub == e {
		a.saw = a.saw || e.outcome.kind == timeout.Aborted
		a.next++
		m.schedule(a)
	}
}

// releaseAll ends the holds in e, those of executions within it included.
func (m *model) releaseAll(e *simulated) {
	for _, h := range m.order {
		if i := slices.Index(h.on, e); i >= 0 {
			outer := h.on[i+1:]
			h.on = h.on[:i]
			if len(outer) > 0 {
				m.beat(outer[0], holdCounts)
			}
			for _, o := range outer {
				o.held--
			}
		}
	}
}

func (m *model) release(h *hold) {
	if len(h.on) > 0 {
		m.beat(h.on[0], holdCounts)
	}
	for _, e := range h.on {
		e.held--
	}
	h.on = nil
}

// runnable gives the executions whose functions have something to do now.
func (m *model) runnable() []*simulated {
	var out []*simulated
	for _, e := range m.started {
		if (e.phase == waiting || e.phase == bursting || e.phase == lingering || e.phase == returning) && e.wake <= m.now ||
			e.phase == waiting && e.attentive && e.done {
			out = append(out, e)
		}
	}
	return out
}

// step lets a function go on.
func (m *model) step(e *simulated) {
	switch e.phase {
	case lingering:
		if e.lates < len(e.late) {
			e.lates++
			m.do(e, e.late[e.lates-1])
			return
		}
		e.phase = returning
	case returning:
		m.end(e)
	case bursting:
		m.burst(e)
	case waiting:
		if e.attentive && e.done && (e.wake > m.now || m.perhaps()) {
			e.outcome.doneAt, e.saw = m.now, true
			if at := m.seen[e.id].doneAt; at != m.now {
				m.expect(fmt.Sprintf("execution %d: the function saw its context done at %v, want %v", e.id, at, m.now))
			}
			e.phase, e.wake = lingering, later(m.now, e.linger)
			return
		}
		if e.next == len(e.steps) {
			e.phase = returning
			return
		}
		m.do(e, e.steps[e.next])
		if e.phase == waiting {
			e.next++
			m.schedule(e)
		}
	}
}

func (m *model) end(e *simulated) {
	e.phase = finished
	e.outcome.finished = true
	if e.outcome.kind == timeout.Aborted && e.stopAt == m.now && !e.over && !e.saw && m.perhaps() {
		e.stopped, e.outcome.stopped, e.outcome.kind = false, false, 0 // it was first
	}
	if !e.over {
		m.finish(e)
	}
}

// do does one step of e's function.
func (m *model) do(e *simulated, st step) {
	of := m.execs[st.of]
	if of != nil && !of.outcome.called {
		of = nil
	}
	switch st.op {
	case opBeat, opDetail, opMonitor:
		m.beat(of, 1)
	case opBurst:
		e.phase, e.left, e.wake = bursting, st.n, m.now
	case opHold:
		h := &hold{}
		m.holds[st.hold] = h
		m.order = append(m.order, h)
		if of == nil {
			return
		}
		m.beat(of, holdCounts)
		for c := of; c != nil && !c.over; c = c.around {
			h.on = append(h.on, c)
			c.held++
		}
	case opRelease:
		if h := m.holds[st.hold]; h != nil {
			m.release(h)
		}
	case opRun:
		n := m.begin(st.sub, e)
		if !n.over {
			e.phase, e.sub = calling, n
		}
	}
}

func (m *model) burst(e *simulated) {
	st := e.steps[e.next]
	of := m.execs[st.of]
	for e.left > 0 {
		m.beat(of, 1)
		e.left--
		if st.every > 0 {
			e.wake = m.now + st.every
			if e.left > 0 {
				return
			}
		}
	}
	if st.every > 0 && e.wake > m.now {
		return // the wait after the last beat
	}
	e.next++
	m.schedule(e)
}

package timeout_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A detail of Monitor.Count that the documentation leaves open.
const (
	holdCounts  = 0 // Hold and release are beats, but are not counted
	startCounts = 1 // the start of a nested execution is counted by the enclosing ones
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
	// The observations, so that a choice that leads elsewhere is given up at once.
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
	foreign            bool // due is the deadline of the caller's context ...
	cut                bool // ... and not the total of an enclosing execution
	// Where limits are only observed: when the total is, or never, and what was exceeded.
	total    time.Duration
	exceeded []exceeding

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

// An exceeding is a limit that would have fired.
type exceeding struct {
	kind timeout.Kind
	at   time.Duration
}

func (e *simulated) hasExceeded(k timeout.Kind) bool {
	return slices.ContainsFunc(e.exceeded, func(x exceeding) bool { return x.kind == k })
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
			e.outcome.kind = timeout.KindTotal
		case around == nil && m.s.caller.deadline > 0, around != nil && around.due > m.now:
			e.outcome.kind = timeout.KindAborted
		}
		if around != nil && !atOnce {
			around.saw = true
		}
		return e
	}
	c := sc.config
	e.limit, e.idle, e.grace = max(0, c.Total), max(0, c.Idle), max(0, c.Grace)
	if c.Grace == 0 {
		e.grace = timeout.DefaultGrace
	}
	if e.limit > 0 {
		e.idle = min(e.idle, e.limit)
		e.due = later(e.start, e.limit)
	}
	e.total = never
	if e.observe {
		e.total, e.due = e.due, never
		if deadline <= e.total {
			e.total = never
		}
	}
	if deadline <= e.due && deadline != never {
		e.foreign = true
		e.due, e.limit = deadline, deadline-e.start
		e.cut = true
		if around != nil && around.due == deadline {
			e.limit, e.cut = around.limit, around.cut // what was configured there
		}
	}
	if around != nil {
		m.beat(around, startCounts)
	}
	e.outcome.called = true
	m.started = append(m.started, e)
	m.schedule(e)
	if done {
		m.stop(e, timeout.KindAborted, 0)
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
		at(e.total)
		if e.idleDue() <= next && !e.hasExceeded(timeout.KindIdle) {
			m.settle(e, m.dates...)
		}
		at(e.idleDue())
	}
	return next
}

package timeout_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

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

// beat records a beat in e and in the enclosing ones, up to the first that has
// ended.
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
		// A burst is one for up to 1 ms after its last crowded moment.
		if n := len(e.crowd); n > 100 && m.now-e.crowd[n-101] <= 2*time.Millisecond {
			e.fuzzy = true
		} else {
			e.low += counts
		}
		if e.stopped && e.stopAt == m.now && e.outcome.kind != timeout.KindIdle {
			// The beat is too late to matter, but it may be in the numbers.
			e.outcome.high = e.high
			e.outcome.sinceLow = 0
			e.outcome.gapLow = min(e.outcome.gapLow, e.gapLow)
		}
	}
}

func (m *model) instant() {
	m.limits()
	// An execution near its idle limit gets a warning, unless something happens
	// right now.
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
		if e.observe && e.due > m.now {
			m.observe(e)
		}
		switch {
		case e.due <= m.now:
			// The deadline of the enclosing context is e's total, and not an
			// abort, although it also is what ends that context.
			if aborted && !(e.foreign && e.around != nil && e.around.outcome.kind == timeout.KindTotal) && m.perhaps() {
				m.stop(e, timeout.KindAborted, 0)
			} else {
				m.stop(e, timeout.KindTotal, e.limit)
			}
		case e.idleDue() <= m.now && !e.observe:
			if aborted && m.perhaps() {
				m.stop(e, timeout.KindAborted, 0)
			} else {
				m.stop(e, timeout.KindIdle, e.idle)
			}
		case aborted:
			m.stop(e, timeout.KindAborted, 0)
		}
	}
}

// observe notes what would have stopped e, once for each limit, the total first.
func (m *model) observe(e *simulated) {
	note := func(k timeout.Kind, due time.Duration) {
		if due > m.now || e.hasExceeded(k) {
			return
		}
		e.exceeded = append(e.exceeded, exceeding{k, m.now})
		n, o := len(e.exceeded), m.seen[e.id]
		if e.hooks && (len(o.exceeded) < n || o.exceeded[n-1].Kind != k || o.exceeded[n-1].Elapsed != m.now-e.start) {
			m.expect(fmt.Sprintf("execution %d: %v is not said to be exceeded at %v", e.id, k, m.now))
		}
	}
	note(timeout.KindTotal, e.total)
	note(timeout.KindIdle, e.idleDue())
}

func (m *model) stop(e *simulated, k timeout.Kind, limit time.Duration) {
	m.settle(e, m.dates...)
	e.stopped, e.stopAt, e.done = true, m.now, true
	if at, kind, ok := m.seen[e.id].stop(); k != timeout.KindAborted && (!ok || at != m.now || kind != k) || ok && at == m.now && kind != k {
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

// gracesOver returns the executions whose function is to be abandoned.
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
		a.saw = a.saw || e.outcome.kind == timeout.KindAborted
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

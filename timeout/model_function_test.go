package timeout_test

import (
	"fmt"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// runnable returns the executions whose functions have something to do now.
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
	if e.outcome.kind == timeout.KindAborted && e.stopAt == m.now && !e.over && !e.saw && m.perhaps() {
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

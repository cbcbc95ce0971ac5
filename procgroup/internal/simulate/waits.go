//go:build unix

package simulate

import (
	"slices"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A state is the present activity of a process.
type state string

// The states of a process that takes more than an instant over something.
const (
	sleeping state = "S"
	working  state = "R"
	onInput  state = "input"
	onOthers state = "children"
	onPipe   state = "pipe" // which is full
)

// A Wait is what the processes of a command did from an instant on: they waited for input, or did not.
type Wait struct {
	At      time.Time
	Waiting waits.State
	Pid     int
}

// A Look is a look of the program at the processes, to find out whether the command waits for input.
type Look struct{ Began, Ended time.Time }

// setState notes what the process does from now on, and returns what it did. The caller holds m.mu.
func (p *process) setState(s state) (before state) {
	before, p.state = p.state, s
	p.m.noteWait()
	return before
}

// noteWait notes whether the command waits for input, if that has changed. The caller holds m.mu.
func (m *Machine) noteWait() {
	if len(m.trees) == 0 {
		return
	}
	w := m.trees[0].waiting()
	if n := len(m.waits); n == 0 || m.waits[n-1].Waiting != w.State || m.waits[n-1].Pid != w.Pid {
		m.waits = append(m.waits, Wait{time.Now(), w.State, w.Pid})
	}
}

// Waits returns the history of the waits.
func (m *Machine) Waits() []Wait {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.waits)
}

// Looks returns the looks that have ended.
func (m *Machine) Looks() []Look {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.looks)
}

// waiting returns what a look finds. The tree certainly waits if nothing goes on without input or a signal. The
// caller holds m.mu.
func (t *Tree) waiting() (l waits.Look) {
	if !t.m.Contains {
		return l // who has left the group is not known
	}
	certain, stopped, others := true, 0, false
	var reader *process
	all := t.members()
	for _, p := range all {
		switch in := p.ends[0]; {
		case p.stopped != nil && (p.stoppedBy == syscall.SIGTTIN || p.stoppedBy == syscall.SIGTTOU):
			stopped = p.pid
		case p.stopped != nil && !p.condemned, p.state == onOthers:
		case p.state == onInput && in != nil && len(in.data) == 0 && in.writers > 0 && !p.condemned && len(p.pending) == 0:
			if others = true; reader == nil {
				reader = p
			}
		default:
			certain, others = false, true
		}
	}
	switch {
	case stopped != 0 && !others:
		return waits.Look{State: waits.StoppedByTerminal, Pid: stopped}
	case reader == nil:
		return l
	case certain && stopped == 0:
		return waits.Look{State: waits.InputCertainly, Pid: reader.pid}
	}
	for _, p := range all {
		above, below := p.above(reader), reader.above(p)
		if above && p.state != onOthers && p.state != sleeping && p.state != onInput || below && (p.state == working || p.state == "") {
			return l
		}
	}
	return waits.Look{State: waits.InputIfPrompted, Pid: reader.pid}
}

// above reports whether q descends from p.
func (p *process) above(q *process) bool {
	for ; q != nil; q = q.mother {
		if q.mother == p {
			return true
		}
	}
	return false
}

// WatchInput returns a meter that finds a wait at the second of two looks, as the contract of waits.Meter demands.
func (m *Machine) WatchInput(tree proctree.Tree) waits.Meter {
	t := tree.(*Tree)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !t.input {
		return nil
	}
	var before waits.Look
	var members []*process
	var used time.Duration
	var looked time.Time
	sure := false
	return func() waits.Look {
		began := time.Now()
		m.mu.Lock()
		l, all, now := t.waiting(), t.members(), t.used()
		m.mu.Unlock()
		m.slow(m.Faults.Input, time.Time{}) // meanwhile that may have become untrue
		m.mu.Lock()
		defer m.mu.Unlock()
		if t.closed {
			m.violation("a look for input after Close")
		}
		same := l == before && slices.Equal(all, members) && now-used <= began.Sub(looked)/100
		sure = same && l.State != waits.None
		before, members, used, looked = l, all, now, began
		l.Next = waits.LookEvery
		if sure {
			l.Next = 2 * waits.LookEvery
		} else {
			l.State, l.Pid = waits.None, 0
		}
		m.looks = append(m.looks, Look{began, time.Now()})
		return l
	}
}

// used returns how much processor time the processes have used. The caller holds m.mu.
func (t *Tree) used() (total time.Duration) {
	for _, p := range t.all {
		total += p.used
		if !p.working.IsZero() {
			total += time.Since(p.working)
		}
	}
	return total
}

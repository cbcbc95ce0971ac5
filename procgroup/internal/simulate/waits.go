//go:build unix

package simulate

import (
	"slices"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A state is the activity of a process during a step that takes time, and "" between such steps.
type state string

const (
	sleeping state = "S"
	working  state = "R"
	onInput  state = "input"    // waits for input
	onOthers state = "children" // waits for the end of its children
	onPipe   state = "pipe"     // waits because its output pipe is full
)

// A Wait records that the command's wait for input changed at the time At. Waiting is waits.None if it ended.
type Wait struct {
	At      time.Time
	Waiting waits.State
	Pid     int // the process that waits or was stopped, or 0
}

// A Look records when an examination by the program, of whether the command waits for input, began and ended.
type Look struct{ Began, Ended time.Time }

// setState sets the state of the process, and returns the one before. The caller holds m.mu.
func (p *process) setState(s state) (before state) {
	before, p.state = p.state, s
	p.m.noteWait()
	return before
}

// noteWait adds a Wait to m.Waits if the command's wait for input has changed. The caller holds m.mu.
func (m *Machine) noteWait() {
	if m.tree == nil {
		return
	}
	w := m.tree.waiting()
	if n := len(m.Waits); n == 0 || m.Waits[n-1].Waiting != w.State || m.Waits[n-1].Pid != w.Pid {
		m.Waits = append(m.Waits, Wait{time.Now(), w.State, w.Pid})
	}
}

// waiting returns the wait for input that an examination would find now. The wait is certain if no process can go on
// without input or a signal. The caller holds m.mu.
func (t *Tree) waiting() (l waits.Look) {
	if !t.m.Contains {
		return l // processes that have left the group are not found, and might go on
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

// WatchInput returns a meter that reports a wait only if two calls in a row find the same wait, the same members and
// hardly any processor time in between; waits.Meter demands that. It returns nil if the input of the command is not a
// pipe. A call of the meter takes Faults.Input.
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
		m.slow(m.Faults.Input, time.Time{}) // l may become outdated meanwhile, as on a real machine
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
		m.Looks = append(m.Looks, Look{began, time.Now()})
		return l
	}
}

// used returns the processor time that all processes have used. The caller holds m.mu.
func (t *Tree) used() (total time.Duration) {
	for _, p := range t.all {
		total += p.used
		if !p.working.IsZero() {
			total += time.Since(p.working)
		}
	}
	return total
}

//go:build unix

package simulate

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
)

// Never is a duration, in [Faults], that ends only at [Machine.Off].
const Never time.Duration = 1<<63 - 1

// Faults contains the time that each call of a method takes, by which the program queries the machine. A call with a
// time limit takes no longer than that. With [Never] a call does not return before [Machine.Off], as if a file system
// hung; only Meter and Input may be Never, because proctree.Tree promises that the other calls return.
type Faults struct {
	Snapshot, Others, Alive, Meter, Stacks, Input time.Duration
}

// A Machine runs the processes of one command. Create it inside the bubble of a test.
type Machine struct {
	// History is complete, and may be read, once Off has returned.
	History
	// Script is the script of the leader of the command.
	Script Script
	Faults Faults
	// Late delays goroutines of the program by the given times: the reader of a stream ("1" or "2") after it is woken, a
	// wait for the leader ("wait") and a Kill ("kill") before they return.
	Late map[string]time.Duration
	// Trace records the events of the processes.
	Trace Trace
	// Command, unless it is nil, is the context of exec.CommandContext. As os/exec does, the machine calls cmd.Cancel
	// when that context is done.
	Command context.Context
	// Contains reports whether the containment finds all descendants of the leader. If it is false, the containment
	// finds only the processes in the leader's group.
	Contains bool

	off chan struct{} // closed by Off

	mu       sync.Mutex // guards the fields below, and History
	lastPid  int
	lastPipe int
	pipes    map[int]*pipe // the pipes that the program may read, by descriptor
	tree     *Tree         // nil before Start
	wrong    []string      // the violations
	socket   *socket       // nil if the command has none
}

// A History is what a machine has recorded, each in the order in which it happened.
type History struct {
	Written []Output    // by the processes, to stdout and stderr
	ReadOut []Output    // by the program, from stdout and stderr
	Input   int64       // number of bytes of input that processes have read
	Fed     []time.Time // when the program wrote or closed the input
	Worked  []Busy      // when processes used the processor
	Waits   []Wait      // changes of the command's wait for input
	Looks   []Look
	Said    int // number of datagrams that processes have sent to the open socket
	Heard   []Heard
	Sent    []Sent
	Ended   End
}

// An End is the state of the command when the program killed or released it.
type End struct {
	At     time.Time
	Killed bool // by Tree.Kill, and not released by Tree.Release
	Alive  int  // number of living processes that the containment finds
	Held   bool // a living process other than the leader had stdout or stderr open
}

// A Sent is a signal that the program sent to a process that had not ended.
type Sent struct {
	At      time.Time
	Pid     int
	Signal  syscall.Signal
	Handled bool // the process had a script for the signal
}

// A Life is the lifetime of a process. End is zero while the process lives.
type Life struct {
	Pid        int
	Begin, End time.Time
}

// A Busy is a period in which a process used the processor.
type Busy struct{ From, To time.Time }

// An Output is a write of a process or a read of the program, of N bytes at the time At.
type Output struct {
	At time.Time
	FD int // 1 or 2: the lowest descriptor of the leader for that pipe
	N  int
}

// New returns a machine that runs script, and whose containment finds all descendants of the leader.
func New(script Script) *Machine {
	m := &Machine{Script: script, off: make(chan struct{}), lastPid: 1 << 23, pipes: make(map[int]*pipe), Contains: true}
	m.Trace.begun = time.Now()
	return m
}

// Off kills all processes that are left, waits until they have ended, and returns the violations of the program, such
// as calls of the methods of a [Tree] in a wrong order. Call it once.
func (m *Machine) Off() (wrong []string) {
	close(m.off)
	m.mu.Lock()
	all := m.processes()
	for _, p := range all {
		if !p.ended {
			p.unkillable = time.Time{}
			p.die(syscall.SIGKILL)
		}
	}
	m.mu.Unlock()
	for _, p := range all {
		<-p.exited
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// Silence returns a reader that blocks until Off is called, and then returns io.EOF.
func (m *Machine) Silence() io.Reader { return silence(m.off) }

type silence <-chan struct{}

func (s silence) Read([]byte) (int, error) { <-s; return 0, io.EOF }

// Pipe creates a pipe. The third result is Read, with which the program reads the descriptor of the reading end.
func (m *Machine) Pipe() (capture.ReadEnd, io.WriteCloser, func(fd uintptr, b []byte) (int, error)) {
	p := m.newPipe()
	m.mu.Lock()
	m.pipes[firstDescriptor+p.id] = p
	m.mu.Unlock()
	return &ReadEnd{p: p}, &WriteEnd{p: p}, m.Read
}

// Read reads from a descriptor of the machine, as read(2) does from a descriptor with O_NONBLOCK.
func (m *Machine) Read(fd uintptr, b []byte) (int, error) {
	m.mu.Lock()
	p := m.pipes[int(fd)]
	m.mu.Unlock()
	if p == nil {
		return 0, syscall.EBADF
	}
	return p.read(b)
}

// Lives returns the lifetimes of the processes that the containment finds, alive or not, the leader first.
func (m *Machine) Lives() (all []Life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.processes() {
		if m.tree.contains(p) {
			all = append(all, Life{p.pid, p.begin, p.end})
		}
	}
	return all
}

// processes returns all processes that there were. The caller holds m.mu.
func (m *Machine) processes() []*process {
	if m.tree == nil {
		return nil
	}
	return m.tree.all
}

// LeaderEnded returns the time at which the leader ended, or the zero time if it has not.
func (m *Machine) LeaderEnded() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tree == nil {
		return time.Time{}
	}
	return m.tree.leader.end
}

// Code returns the exit code of the leader: 128+n if the signal n has killed it.
func (m *Machine) Code() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.tree.leader
	if l.signal != 0 {
		return 128 + int(l.signal)
	}
	return l.code
}

// Alive returns the ids of all living processes, whether the containment finds them or not.
func (m *Machine) Alive() (pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.processes() {
		if !p.ended {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// violation records a fault of the program, which Off returns. The caller holds m.mu.
func (m *Machine) violation(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// late delays the calling goroutine by m.Late[who].
func (m *Machine) late(who string) {
	if d := m.Late[who]; d > 0 {
		m.slow(d, time.Time{})
	}
}

// slow waits for d, but not beyond until, unless until is zero, and not beyond Off. If d is Never, it waits for Off.
func (m *Machine) slow(d time.Duration, until time.Time) {
	switch {
	case d == Never:
		<-m.off
	case d > 0:
		if !until.IsZero() {
			d = max(min(d, time.Until(until)), 0)
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-m.off:
		}
	}
}

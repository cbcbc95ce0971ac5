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

// Never is a duration that does not end before the machine is switched off.
const Never time.Duration = 1<<63 - 1

// Faults make the machine slow. A duration is how long each call takes, though none goes on beyond the time that it
// is given; [Never] lets it wait until [Machine.Off], as a look at a file system that hangs does. Only a Meter and
// an Input may be that slow: a Tree promises that the other calls return.
type Faults struct {
	Snapshot, Others, Alive, Meter, Stacks, Input time.Duration
}

// A Machine runs the processes of one command. Make one inside the bubble of a test.
type Machine struct {
	// Script is what the leader of the command does.
	Script Script
	// Faults is how slow the machine is.
	Faults Faults
	// Late has the goroutines of the program that are late, and by how much: one that reads a stream ("1", "2"), that
	// waits for the leader ("wait"), or that has killed everything ("kill").
	Late map[string]time.Duration
	// Trace has what is seen of the processes.
	Trace Trace
	// Command, if not nil, is the context of exec.CommandContext. The machine heeds it as os/exec does.
	Command context.Context
	// Contains says which processes the containment finds: all that descend from the leader, or, if it is false,
	// those that have stayed in its group.
	Contains bool

	off chan struct{}

	mu       sync.Mutex
	lastPid  int
	lastPipe int
	pipes    map[int]*pipe // by id, of the ends that the program reads
	trees    []*Tree
	wrong    []string
	writes   []Output
	end      End
	input    int64 // bytes that processes have read of it
	reads    []Output
	inputs   []time.Time
	works    []Busy
	waits    []Wait
	looks    []Look
	listed   []time.Time
	socket   *socket // nil if the command has none
	received []Heard
	sent     []Sent
}

// An End is the state of the command when the program killed or released it.
type End struct {
	At     time.Time
	Killed bool
	Alive  int  // members
	Held   bool // a process beside the leader held an output stream
}

// A Sent is a signal that a process has got.
type Sent struct {
	At      time.Time
	Pid     int
	Signal  syscall.Signal
	Handled bool // by a script of the process
}

// A Life is the lifetime of a process. Its end is zero while the process lives.
type Life struct {
	Pid        int
	Begin, End time.Time
}

// A Busy is a time in which a process used the processor.
type Busy struct{ From, To time.Time }

// An Output is what a process wrote at an instant, or what the program read.
type Output struct {
	At time.Time
	FD int // 1 or 2, at the start of the command
	N  int
}

// New returns a machine that runs script.
func New(script Script) *Machine {
	m := &Machine{Script: script, off: make(chan struct{}), lastPid: 1 << 23, pipes: make(map[int]*pipe), Contains: true}
	m.Trace.begun = time.Now()
	return m
}

// Off ends all processes that are left, and returns the rules that the program has broken.
func (m *Machine) Off() (wrong []string) {
	close(m.off)
	m.mu.Lock()
	var all []*process
	for _, t := range m.trees {
		all = append(all, t.all...)
	}
	for _, p := range all {
		if p.alive() {
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

// Silence returns an input that does not come before the machine is switched off.
func (m *Machine) Silence() io.Reader { return silence(m.off) }

type silence <-chan struct{}

func (s silence) Read([]byte) (int, error) { <-s; return 0, io.EOF }

// Pipe makes a pipe. The third result is read(2) without waiting, for its reading end.
func (m *Machine) Pipe() (capture.ReadEnd, io.WriteCloser, func(fd uintptr, b []byte) (int, error)) {
	p := m.newPipe()
	m.mu.Lock()
	m.pipes[firstDescriptor+p.id] = p
	m.mu.Unlock()
	return &ReadEnd{p: p}, &WriteEnd{p: p}, m.Read
}

// Read reads from a descriptor of the machine, as read(2) does.
func (m *Machine) Read(fd uintptr, b []byte) (int, error) {
	m.mu.Lock()
	p := m.pipes[int(fd)]
	m.mu.Unlock()
	if p == nil {
		return 0, syscall.EBADF
	}
	return p.read(b)
}

// locked returns *noted, read under the lock of the machine.
func locked[T any](m *Machine, noted *T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *noted
}

// Written returns what processes have written to the pipes of the program, in the order of writing.
func (m *Machine) Written() []Output { return locked(m, &m.writes) }

// ReadOut returns what the program has read of its pipes.
func (m *Machine) ReadOut() []Output { return locked(m, &m.reads) }

// Input returns how many bytes of their input processes have read, and when the program has written some, or has
// closed it.
func (m *Machine) Input() (read int64, fed []time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.input, m.inputs
}

// Worked returns the times in which processes used the processor.
func (m *Machine) Worked() []Busy { return locked(m, &m.works) }

// Sent returns the signals that the program has sent.
func (m *Machine) Sent() []Sent { return locked(m, &m.sent) }

// Lives returns the lives of the members, the leader first.
func (m *Machine) Lives() (all []Life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.trees {
		for _, p := range t.all {
			if t.contains(p) {
				all = append(all, Life{p.pid, p.begin, p.end})
			}
		}
	}
	return all
}

// Listed returns the times at which the program listed the processes.
func (m *Machine) Listed() []time.Time { return locked(m, &m.listed) }

// Ended returns how the command was ended.
func (m *Machine) Ended() End { return locked(m, &m.end) }

// LeaderEnded returns the time at which the leader ended, or the zero time if it has not.
func (m *Machine) LeaderEnded() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.trees) == 0 {
		return time.Time{}
	}
	return m.trees[0].leader.end
}

// Code returns the code of the leader, as a shell reports it.
func (m *Machine) Code() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.trees[0].leader
	if l.signal != 0 {
		return 128 + int(l.signal)
	}
	return l.code
}

// Alive returns the ids of the processes that are alive, of all trees.
func (m *Machine) Alive() (pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.trees {
		for _, p := range t.all {
			if p.alive() {
				pids = append(pids, p.pid)
			}
		}
	}
	return pids
}

// violation records that the program has broken a rule. The caller holds m.mu.
func (m *Machine) violation(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// late makes a goroutine of the program late.
func (m *Machine) late(who string) {
	if d := m.Late[who]; d > 0 {
		m.slow(d, time.Time{})
	}
}

// slow waits for the duration of a call, which ends at until at the latest, unless until is zero.
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

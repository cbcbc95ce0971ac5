//go:build unix

package simulate

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process runs a script on its own goroutine.
type process struct {
	m                *Machine
	tree             *Tree
	mother           *process // the process that started it; nil for the leader
	pid, parent, grp int      // parent is 1 for a daemon
	name             string   // in the trace
	script           Script

	dying  chan struct{} // closed when the process must end at once
	exited chan struct{} // closed when the process has ended
	wake   chan struct{} // receives a value when a signal is added to pending

	// Guarded by m.mu.
	ends       map[int]*pipe             // the open ends of pipes, by descriptor
	traps      map[syscall.Signal]Script // nil for a signal that is ignored
	handling   map[syscall.Signal]bool   // signals whose scripts are running
	pending    []syscall.Signal          // trapped signals whose scripts have not begun
	later      []syscall.Signal          // signals that arrived while the process was stopped
	stopped    chan struct{}             // closed by SIGCONT; nil if the process is not stopped
	stoppedBy  syscall.Signal
	state      state
	unkillable time.Time      // no signal ends the process before this time
	condemned  bool           // dying is closed
	ended      bool           // set by run at its end
	begin, end time.Time      // of the process; end is zero until it has ended
	children   int            // number of processes that it has started
	reaped     bool           // used for the leader only
	code       int            // exit code
	signal     syscall.Signal // the signal that kills or has killed the process, or 0
	used       time.Duration  // processor time
	working    time.Time      // since when the process has been using the processor, or zero
}

// spawn starts a process that runs script. It inherits the ends of pipes and, of traps, the signals that are ignored.
// mother is the process that starts it, or nil for the leader, and parent is its parent's id. If group is 0, the
// process leads a new group. The caller holds m.mu.
func (m *Machine) spawn(t *Tree, mother *process, script Script, parent, group int, ends map[int]*pipe, traps map[syscall.Signal]Script) *process {
	m.lastPid++
	p := &process{
		m: m, tree: t, mother: mother, begin: time.Now(), pid: m.lastPid, parent: parent, grp: group, script: script,
		dying: make(chan struct{}), exited: make(chan struct{}), wake: make(chan struct{}, 1),
		ends: make(map[int]*pipe), traps: make(map[syscall.Signal]Script), handling: make(map[syscall.Signal]bool),
	}
	if group == 0 {
		p.grp = p.pid
	}
	for fd, e := range ends {
		p.ends[fd] = e
		if fd == 0 {
			e.readers++
		} else {
			e.writers++
		}
	}
	for sig, s := range traps {
		if s == nil { // as after execve(2), ignored signals stay ignored, and trapped signals get their default
			p.traps[sig] = nil
		}
	}
	if p.name = "1"; mother != nil {
		mother.children++
		p.name = fmt.Sprintf("%s.%d", mother.name, mother.children)
	}
	t.all = append(t.all, p)
	m.noteWait()
	go p.run()
	return p
}

// run runs the script, and then records the end of the process and closes its ends.
func (p *process) run() {
	defer close(p.exited)
	p.perform(p.script)
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.ended, p.end = true, time.Now()
	p.note(p.endText())
	p.stopWorking()
	for fd := range p.ends {
		p.closeEnd(fd)
	}
	p.tree.changed.send()
	p.m.noteWait()
}

// perform runs the steps of a script. It returns false if the process must end.
func (p *process) perform(s Script) bool {
	for _, step := range s {
		if !p.settle() || !p.step(step) {
			return false
		}
	}
	return p.settle()
}

// dead reports whether the process must end at once.
func (p *process) dead() bool {
	select {
	case <-p.dying:
		return true
	default:
		return false
	}
}

// step does one step. It returns false if the process must end.
func (p *process) step(s Step) bool {
	switch s.Do {
	case Write:
		return p.write(s.FD, s.N)
	case Read:
		return p.read(s.N)
	case Sleep:
		return p.pause(sleeping, s.D, nil)
	case Work:
		p.m.mu.Lock()
		p.working = time.Now()
		p.m.mu.Unlock()
		ok := p.pause(working, s.D, nil)
		p.m.mu.Lock()
		p.stopWorking()
		p.m.mu.Unlock()
		return ok
	case Await:
		return p.await()
	case Stop:
		p.m.mu.Lock()
		p.halt(s.Signal)
		p.m.mu.Unlock()
		return p.settle()
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	switch s.Do {
	case Fork:
		p.m.spawn(p.tree, p, s.Script, p.pid, p.grp, p.ends, p.traps)
	case Daemon:
		p.m.spawn(p.tree, p, s.Script, 1, 0, p.ends, p.traps)
	case Trap:
		p.traps[s.Signal] = append(Script{}, s.Script...) // never nil
	case Ignore:
		p.traps[s.Signal] = nil
	case Close:
		p.closeEnd(s.FD)
	case Say:
		for range s.N {
			p.m.say(s.Text)
		}
	case Unkillable:
		p.unkillable = time.Now().Add(s.D)
	case Exit:
		p.code = s.N
		p.condemn()
		return false
	case Die:
		p.die(s.Signal)
		return !p.condemned
	}
	return true
}

// pause waits in the state in until changed is closed or, if changed is nil, for d. It handles signals that arrive
// meanwhile, and then goes on waiting. It returns false if the process must end.
func (p *process) pause(in state, d time.Duration, changed <-chan struct{}) bool {
	p.m.mu.Lock()
	before := p.setState(in)
	p.m.mu.Unlock()
	defer func() {
		p.m.mu.Lock()
		p.setState(before)
		p.m.mu.Unlock()
	}()
	var over <-chan time.Time
	if changed == nil {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	for {
		select {
		case <-p.dying:
			return false
		case <-changed:
			return p.settle()
		case <-over:
			return p.settle()
		case <-p.wake:
			if !p.settle() {
				return false
			}
		}
	}
}

// write writes n bytes, and waits while the pipe is full. If the pipe has no reader, the process dies of SIGPIPE,
// unless it traps or ignores SIGPIPE. If fd is closed, write does nothing. It returns false if the process must end.
func (p *process) write(fd, n int) bool {
	for n > 0 {
		p.m.mu.Lock()
		e := p.ends[fd]
		if e == nil {
			p.m.mu.Unlock()
			return true // the process ignores the error
		}
		if e.readers == 0 {
			script, trapped := p.traps[syscall.SIGPIPE]
			if !trapped {
				p.die(syscall.SIGPIPE)
			}
			handled := trapped && script != nil && !p.handling[syscall.SIGPIPE]
			p.m.mu.Unlock()
			return trapped && (!handled || p.handle(syscall.SIGPIPE))
		}
		k := min(n, capacity-len(e.data))
		for i := range k {
			e.data = append(e.data, ByteOf(e.fd, e.last+int64(i)))
		}
		e.last += int64(k)
		n -= k
		changed := e.changed.next()
		if k > 0 {
			p.m.Written = append(p.m.Written, Output{At: time.Now(), FD: e.fd, N: k})
			e.changed.send()
		}
		p.m.mu.Unlock()
		if k == 0 && !p.pause(onPipe, 0, changed) || !p.settle() {
			return false
		}
	}
	return true
}

// read waits for input or the end of the input, and reads up to n bytes. It returns false if the process must end.
func (p *process) read(n int) bool {
	for {
		p.m.mu.Lock()
		e := p.ends[0]
		if e == nil {
			p.m.mu.Unlock()
			return true
		}
		changed := e.changed.next()
		p.m.mu.Unlock()
		if got, err := e.read(make([]byte, n)); err != syscall.EAGAIN {
			p.m.mu.Lock()
			p.m.Input += int64(got)
			p.m.mu.Unlock()
			return true
		}
		if !p.pause(onInput, 0, changed) {
			return false
		}
	}
}

// await waits for the end of all children. It returns false if the process must end.
func (p *process) await() bool {
	for {
		p.m.mu.Lock()
		some := slices.ContainsFunc(p.tree.all, func(c *process) bool { return c.parent == p.pid && !c.ended })
		changed := p.tree.changed.next()
		p.m.mu.Unlock()
		if !some {
			return true
		}
		if !p.pause(onOthers, 0, changed) {
			return false
		}
	}
}

// The callers of the methods below hold m.mu.

// closeEnd closes the descriptor fd, if it is open.
func (p *process) closeEnd(fd int) {
	e := p.ends[fd]
	if e == nil {
		return
	}
	delete(p.ends, fd)
	if fd == 0 {
		e.readers--
	} else {
		e.writers--
	}
	e.changed.send()
}

// note adds an event of p to the trace.
func (p *process) note(what string) { p.m.Trace.add(p.name, what) }

// endText describes the end of the process, for the trace.
func (p *process) endText() string {
	if p.signal != 0 {
		return "dies of " + unix.SignalName(p.signal)
	}
	return fmt.Sprintf("exit %d", p.code)
}

// stopWorking ends the use of the processor, if there is any, and adds its time to p.used and m.Worked.
func (p *process) stopWorking() {
	if !p.working.IsZero() {
		p.m.Worked = append(p.m.Worked, Busy{p.working, time.Now()})
		p.used += time.Since(p.working)
		p.working = time.Time{}
	}
}

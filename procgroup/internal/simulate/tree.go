//go:build unix

package simulate

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// A Tree is a command on a machine. It implements proctree.Tree, and records a violation if the program calls its
// methods in a wrong order. The comments of its methods say how they differ from those of proctree.Tree.
type Tree struct {
	m      *Machine
	leader *process

	// Guarded by m.mu.
	all     []*process
	changed broadcast // a process has ended
	input   bool      // the standard input of the leader is a pipe
	ended   bool      // Kill or Release was called
	closed  bool      // Close was called
}

var _ proctree.Tree = (*Tree)(nil)

// Start starts the machine's script as cmd. The streams of cmd that are ends of the machine's pipes are passed to the
// leader, which has no other stream.
func (m *Machine) Start(ctx context.Context, cmd *exec.Cmd) (proctree.Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.Command != nil && m.Command.Err() != nil {
		return nil, m.Command.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &Tree{m: m}
	ends := make(map[int]*pipe)
	if r, ok := cmd.Stdin.(*ReadEnd); ok {
		ends[0], t.input = r.p, true
	}
	for fd, w := range map[int]any{1: cmd.Stdout, 2: cmd.Stderr} {
		if w, ok := w.(*WriteEnd); ok {
			if ends[fd] = w.p; w.p.fd == 0 || fd < w.p.fd {
				w.p.fd = fd
			}
		}
	}
	m.tree = t
	t.leader = m.spawn(t, nil, m.Script, os.Getpid(), 0, ends, nil)
	if m.Command != nil {
		go func() {
			select {
			case <-m.Command.Done():
				_ = cmd.Cancel()
			case <-t.leader.exited:
			}
		}()
	}
	cmd.Process = &os.Process{Pid: t.leader.pid}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return t, nil
}

// members returns the processes that are alive and that the containment finds. The caller holds m.mu.
func (t *Tree) members() (found []*process) {
	for _, p := range t.all {
		if !p.ended && t.contains(p) {
			found = append(found, p)
		}
	}
	return found
}

// contains reports whether the containment finds a process, alive or not.
func (t *Tree) contains(p *process) bool { return t.m.Contains || p.grp == t.leader.pid }

// check records a violation if Kill or Release was called before. The caller holds m.mu.
func (t *Tree) check(call string) {
	if t.ended {
		t.m.violation("%s after Kill or Release", call)
	}
}

// end marks the tree as killed or, if killed is false, as released, after which other calls are violations, and records
// its state in Ended of the History. The caller holds m.mu.
func (t *Tree) end(killed bool) {
	t.ended = true
	e := End{At: time.Now(), Killed: killed, Alive: len(t.members())}
	for _, p := range t.all {
		e.Held = e.Held || p != t.leader && !p.ended && (p.ends[1] != nil || p.ends[2] != nil)
	}
	t.m.Ended = e
}

// Contained returns Cgroup if the machine finds all descendants of the leader, and otherwise Group.
func (t *Tree) Contained() proctree.Kind {
	if t.m.Contains {
		return proctree.Cgroup
	}
	return proctree.Group
}

// Wait waits for the leader. If it had to wait, it returns late by Machine.Late["wait"].
func (t *Tree) Wait(ctx context.Context, deadline time.Time) (ended bool) {
	select {
	case <-t.leader.exited:
		return true
	default:
	}
	defer t.m.late("wait")
	if !deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	select {
	case <-t.leader.exited:
		return true
	case <-ctx.Done():
		return false
	}
}

// Signal sends sig to the members.
func (t *Tree) Signal(sig syscall.Signal) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.check("Signal")
	all := t.members()
	if len(all) == 0 {
		return os.ErrProcessDone
	}
	for _, p := range all {
		p.kill(sig)
	}
	return nil
}

// StackWriters finds the members that trap SIGQUIT, and takes Faults.Stacks for it.
func (t *Tree) StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time)) {
	t.m.slow(t.m.Faults.Stacks, until)
	t.m.mu.Lock()
	t.check("StackWriters")
	var found []*process
	for _, p := range t.members() {
		if p.traps[syscall.SIGQUIT] != nil {
			found = append(found, p)
		}
	}
	t.m.mu.Unlock()
	found = slices.DeleteFunc(found, func(p *process) bool { return only != nil && !only(p.pid) })
	if len(found) == 0 {
		return nil
	}
	return func(time.Time) {
		t.m.mu.Lock()
		defer t.m.mu.Unlock()
		t.check("the function of StackWriters")
		for _, p := range found {
			p.kill(syscall.SIGQUIT)
		}
	}
}

// Ask sends sig and SIGCONT to the members. It always returns true.
func (t *Tree) Ask(sig syscall.Signal) bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.check("Ask")
	for _, p := range t.members() {
		p.kill(sig)
		p.kill(syscall.SIGCONT)
	}
	return true
}

// Alive reports whether a member is alive. It takes Faults.Alive.
func (t *Tree) Alive() bool {
	t.m.slow(t.m.Faults.Alive, time.Time{})
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if !t.leader.ended {
		t.m.violation("Alive before the leader has ended")
	}
	return len(t.members()) > 0
}

// Meter returns a meter of the processor time of all processes, whatever its argument. A call of the meter takes
// Faults.Meter.
func (t *Tree) Meter(bool) work.Meter {
	var before time.Duration
	return func() (work.Usage, bool) {
		t.m.slow(t.m.Faults.Meter, time.Time{})
		t.m.mu.Lock()
		defer t.m.mu.Unlock()
		if t.closed {
			t.m.violation("a Meter after Close")
		}
		total := t.used()
		used := total - before
		before = total
		return work.Usage{CPU: used}, true
	}
}

// Snapshot lists the members, and takes Faults.Snapshot.
func (t *Tree) Snapshot(until time.Time) (all []proctree.Process, more bool) {
	return t.list("Snapshot", t.m.Faults.Snapshot, until), false
}

// Others lists the members other than the leader, and takes Faults.Others.
func (t *Tree) Others(until time.Time) (all []proctree.Process, more bool) {
	all = t.list("Others", t.m.Faults.Others, until)
	return slices.DeleteFunc(all, func(p proctree.Process) bool { return p.Pid == t.leader.pid }), false
}

// list implements Snapshot and Others. It takes the time takes, but not longer than until.
func (t *Tree) list(call string, takes time.Duration, until time.Time) (all []proctree.Process) {
	t.m.slow(takes, until)
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.check(call)
	for _, p := range t.members() {
		all = append(all, p.info())
	}
	return all
}

func (p *process) info() proctree.Process {
	state := "S"
	if p.stopped != nil {
		state = "T"
	}
	return proctree.Process{Pid: p.pid, Parent: p.parent, State: state, Args: []string{p.script.String()}}
}

// Kill sends SIGKILL to the members until none is alive, or the deadline has come. It returns late by
// Machine.Late["kill"].
func (t *Tree) Kill(deadline time.Time) (survivors, unidentified []int) {
	t.m.mu.Lock()
	t.check("Kill")
	t.end(true)
	t.m.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for over := false; ; {
		t.m.mu.Lock()
		survivors = nil
		for _, p := range t.members() {
			p.kill(syscall.SIGKILL)
			survivors = append(survivors, p.pid)
		}
		changed := t.changed.next()
		t.m.mu.Unlock()
		if len(survivors) == 0 || over {
			break
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		}
	}
	t.reap()
	t.m.late("kill")
	return survivors, nil
}

// Release reaps the leader, and lets the other processes run on.
func (t *Tree) Release(time.Time) {
	t.m.mu.Lock()
	t.check("Release")
	t.end(false)
	if !t.leader.ended {
		t.m.violation("Release before the leader has ended")
	}
	t.m.mu.Unlock()
	t.reap()
}

// reap reaps the leader if it has ended.
func (t *Tree) reap() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.leader.reaped = t.leader.ended
}

// State returns how the leader ended: nil for exit code 0, and otherwise an [EndError].
func (t *Tree) State() (err error, reaped bool) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if !t.ended {
		t.m.violation("State before Kill or Release")
	}
	l := t.leader
	if !l.reaped {
		return nil, false
	}
	if l.signal != 0 {
		return EndError{Signal: l.signal, Code: 128 + int(l.signal)}, true
	}
	if l.code != 0 {
		return EndError{Code: l.code}, true
	}
	return nil, true
}

// Total returns the zero Total, because the machine keeps no figures.
func (t *Tree) Total() proctree.Total { return proctree.Total{} }

// Unanswered returns 0, because calls of a Meter that never return are not counted there.
func (t *Tree) Unanswered() int { return 0 }

// Close closes the tree. A call before Kill or Release, a second call and a later call of a meter are violations.
func (t *Tree) Close() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.closed {
		t.m.violation("Close twice")
	}
	if !t.ended {
		t.m.violation("Close before Kill or Release")
	}
	t.closed = true
}

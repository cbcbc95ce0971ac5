package proctree

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// A Foreign is a child of this process that the caller has started and waits for, with its descendants. It can
// only be looked at, and asked for its stacks.
type Foreign struct{ tree *linuxTree }

// Watch returns a Foreign for p, a child of this process, whose descendants it finds by their parents. The caller
// must close the Foreign. If p has been waited for, the error is os.ErrProcessDone.
func Watch(p *os.Process) (*Foreign, error) {
	fd := openPidfd(p.Pid)
	if fd == nil {
		if err := p.Signal(unix.Signal(0)); errors.Is(err, os.ErrProcessDone) {
			return nil, err
		}
		return nil, unsupported("there is no descriptor of the process to be had")
	}
	l := &leader{pid: p.Pid, fd: fd}
	return &Foreign{&linuxTree{leader: l, kind: Descendants, others: &descendants{leader: l}}}, nil
}

// Meter does what Tree.Meter does.
func (f *Foreign) Meter(io bool) work.Meter { return f.tree.Meter(io) }

// Snapshot does what Tree.Snapshot does.
func (f *Foreign) Snapshot(until time.Time) ([]Process, bool) { return f.tree.Snapshot(until) }

// StackWriters does what Tree.StackWriters does.
func (f *Foreign) StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time)) {
	return f.tree.StackWriters(until, only)
}

// Close releases the descriptor of the child.
func (f *Foreign) Close() { f.tree.close() }

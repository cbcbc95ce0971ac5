package proctree

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// A Foreign is a child of this process that the caller has started and waits for, with its descendants. Its methods
// measure and list these processes, and make them write their stacks.
type Foreign struct{ tree *linuxTree }

// Watch returns a Foreign for p, a child of this process. The Foreign finds the descendants of p through their parents.
// The caller must close it. The error is os.ErrProcessDone if p has been waited for, and wraps errors.ErrUnsupported if
// no pidfd can be opened.
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

// Meter is like Tree.Meter.
func (f *Foreign) Meter(io bool) work.Meter { return f.tree.Meter(io) }

// Snapshot is like Tree.Snapshot.
func (f *Foreign) Snapshot(until time.Time) ([]Process, bool) { return f.tree.Snapshot(until) }

// StackWriters is like Tree.StackWriters.
func (f *Foreign) StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time)) {
	return f.tree.StackWriters(until, only)
}

// Close closes the pidfd of the child.
func (f *Foreign) Close() { f.tree.close() }

package proctree

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Watch returns a Foreign for p, a child of this process. The Foreign finds the descendants of p through their parents.
// The error is os.ErrProcessDone if p has been waited for, and wraps errors.ErrUnsupported if no pidfd can be opened.
func Watch(p *os.Process) (Foreign, error) {
	fd := openPidfd(p.Pid)
	if fd == nil {
		if err := p.Signal(unix.Signal(0)); errors.Is(err, os.ErrProcessDone) {
			return nil, err
		}
		return nil, unsupported("there is no descriptor of the process to be had")
	}
	l := &leader{pid: p.Pid, fd: fd}
	return foreign{&linuxTree{leader: l, kind: Descendants, others: &descendants{leader: l}}}, nil
}

// A foreign is a linuxTree whose leader is waited for elsewhere.
type foreign struct{ *linuxTree }

// Close closes the pidfd of the child.
func (f foreign) Close() { f.close() }

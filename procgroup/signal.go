package procgroup

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Signal sends sig once to each process of the command's tree that the containment finds. It has no
// other effect on the command: stopped processes are not continued, and the limits keep running. If
// the command dies of the signal, the Reason is [Exited], and the exit code is 128 plus the number
// of the signal.
//
// Signal never affects a process outside the tree. If the command has ended, or its tree is
// being killed, Signal returns [os.ErrProcessDone]. If sig is not a signal of the system, the
// error wraps [errors.ErrUnsupported].
//
// On Windows, [os.Kill] kills the tree, and [os.Interrupt] and SIGTERM send Ctrl-Break; the
// error wraps [errors.ErrUnsupported] if the command does not share a console with the host.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := signalNumber(sig)
	if !ok {
		return fmt.Errorf("procgroup: signal %s is not a %s (%w)", signalText(sig), someSignals, errors.ErrUnsupported)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over.Load() {
		return os.ErrProcessDone
	}
	return p.tree.Signal(number)
}

// noMoreSignals is called before the process ids of the tree may be reused. Callers that wait to
// signal give up first: each signal may take as long as looking at all processes of the system,
// and the end of the call must not wait for all of them.
func (p *Process) noMoreSignals() {
	p.over.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.viewing <- struct{}{}
	<-p.viewing
}

// signalText describes a signal that is not accepted. A type of the caller's is named, and none of its methods called.
func signalText(sig os.Signal) string {
	if number, ok := sig.(syscall.Signal); ok {
		return number.String()
	}
	return fmt.Sprintf("%T", sig)
}

// signalNumber returns the number of sig, and reports whether this system has such a signal.
func signalNumber(sig os.Signal) (syscall.Signal, bool) {
	number, ok := sig.(syscall.Signal)
	return number, ok && hasSignal(number)
}

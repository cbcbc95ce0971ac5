package procgroup

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithStopSignal sets what asks the tree to end when a limit has fired, or on an abort
// with a grace, in place of SIGTERM. It goes to the whole tree and is followed by
// SIGCONT, and what is still there after the grace is killed. SIGKILL kills at once.
//
// On Windows there is one request to end, Ctrl-Break: that is SIGTERM and
// [os.Interrupt] both, and with [os.Kill] the tree is killed at once.
//
// Anything else that is not a signal of this system, or 0, is an error of Start, a
// [*timeout.ConfigError].
func WithStopSignal(sig os.Signal) Option {
	return optionFunc(func(s *settings) {
		number, ok := signalNumber(sig)
		s.stopSignal, s.err = number, nil
		if !ok || number == 0 {
			s.err = &timeout.ConfigError{Key: "WithStopSignal", Value: fmt.Sprint(sig), Accepted: "a " + someSignals}
		}
	})
}

// Signal sends sig to the command and everything that it has started, as far as the
// containment finds it, to each process once. What comes of it is the command's own
// doing: one that dies of it has [Exited], with 128+n. Nothing that is stopped is
// continued, and the limits run on.
//
// When the command has ended, or everything is being killed, the error is
// [os.ErrProcessDone]; before that no process can be hit that is not of the tree. What is
// not a signal of this system is an error in whose tree [errors.ErrUnsupported] is found.
// On Windows [os.Kill] kills the tree; [os.Interrupt] and SIGTERM are Ctrl-Break, and
// unsupported where the command has no console that it shares with the host.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := signalNumber(sig)
	if !ok {
		return fmt.Errorf("procgroup: signal %v is not a %s (%w)", sig, someSignals, errors.ErrUnsupported)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over.Load() {
		return os.ErrProcessDone
	}
	return p.tree.Signal(number)
}

// noMoreSignals is for when the ids of the tree may begin to mean others. Those that wait
// to signal give up first: each may take as long as a look at all processes, and the end of
// the call must not wait for all of them.
func (p *Process) noMoreSignals() {
	p.over.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.viewing.Lock()
	defer p.viewing.Unlock()
}

// signalNumber reports whether there is such a signal here.
func signalNumber(sig os.Signal) (syscall.Signal, bool) {
	number, ok := sig.(syscall.Signal)
	return number, ok && hasSignal(number)
}

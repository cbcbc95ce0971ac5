package procgroup

import (
	"errors"
	"fmt"
	"os"
)

// Signal sends sig once to each process of the command's tree that the containment finds. It has no other effect on the
// command: stopped processes are not continued, and the limits keep running. If the command dies of the signal, the
// Reason is [Exited], and the exit code is 128 plus the number of the signal.
//
// Signal never affects a process outside the tree. If the command has ended, or its tree is being killed, Signal
// returns [os.ErrProcessDone]. If sig is not a signal of the system, the error wraps [errors.ErrUnsupported].
//
// On Windows, [os.Kill] kills the tree, and [os.Interrupt] and SIGTERM send Ctrl-Break; the error wraps
// [errors.ErrUnsupported] if the command does not share a console with the host.
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

// noMoreSignals makes Signal return [os.ErrProcessDone] from now on, and waits for the call of Signal and the look of
// describe that are in progress. Call it before the process ids of the tree may be reused. Calls of Signal that wait
// for p.mu send nothing: each would take as long as a look at all processes, and so delay the end of the command.
func (p *Process) noMoreSignals() {
	p.over.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.viewing <- struct{}{}
	<-p.viewing
}

// Interrupt asks the command to interrupt its work, as Ctrl-C does. In the terminal of [Terminal], it types Ctrl-C, or
// the key that the command has set in its place: only the foreground job of a shell gets SIGINT, and an editor gets a
// key. As on any terminal, the key discards output that has not been read yet, so output that the command writes at
// that moment may be missing. Interrupt is p.Signal(os.Interrupt) if there is no terminal, or if the terminal accepts
// no input at the moment, has no such key, or is not a controlling terminal because Orphans of [Stop] is set.
//
// The errors are those of [Process.Signal].
func (p *Process) Interrupt() error {
	if p.terminal != nil && !p.stop.Orphans && !p.over.Load() && p.out.Interrupt() {
		p.input.noteInput()
		return nil
	}
	return p.Signal(os.Interrupt)
}

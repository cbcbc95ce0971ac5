//go:build !plan9

package timeout

import (
	"errors"
	"os/exec"
	"syscall"
)

// endedBySignal returns the number of the signal that ended a process. ok is false if no signal has ended it.
func endedBySignal(e *exec.ExitError) (number int, ok bool) {
	if e.ProcessState == nil {
		return 0, false
	}
	ws, ok := e.Sys().(interface {
		Signaled() bool
		Signal() syscall.Signal
	})
	if !ok || !ws.Signaled() {
		return 0, false
	}
	return int(ws.Signal()), true
}

// isShortage reports whether err means that the system lacks memory, processes or descriptors.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

//go:build unix

package simulate

import (
	"fmt"
	"syscall"
)

// An EndError is the error of a leader that did not exit with 0. It replaces *exec.ExitError, which needs a real
// process.
type EndError struct {
	Signal syscall.Signal // the signal that killed the leader; 0 if it exited
	Code   int            // the exit code; 128 plus the number of Signal if that is not 0
}

// Error returns the text of an *exec.ExitError.
func (e EndError) Error() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// ExitCode returns e.Code, the code that a shell would report.
func (e EndError) ExitCode() int { return e.Code }

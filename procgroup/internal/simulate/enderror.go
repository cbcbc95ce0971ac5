//go:build unix

package simulate

import (
	"fmt"
	"syscall"
)

// An EndError is the error of a leader that did not exit with 0. It stands for an *exec.ExitError, which needs a
// process of the system.
type EndError struct {
	Signal syscall.Signal // 0 if it exited
	Code   int
}

// Error returns what an *exec.ExitError says.
func (e EndError) Error() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// ExitCode returns the code that a shell reports.
func (e EndError) ExitCode() int { return e.Code }

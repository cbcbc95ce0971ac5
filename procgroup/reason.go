package procgroup

import (
	"strconv"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Reason says why a command ended. The zero Reason is Exited.
type Reason int

const (
	// Exited means that the command ended by itself, or by a signal that this package did not
	// send.
	Exited Reason = iota
	// IdleTimeout means that the idle limit stopped the command: there was no output and,
	// with an Activity, no work.
	IdleTimeout
	// TotalTimeout means that the total limit or the deadline of the context stopped the
	// command.
	TotalTimeout
	// Aborted means that the command was stopped because the caller's context was cancelled.
	Aborted
	// WaitingForInput means that the command was stopped because it waited for input; see
	// [Input].
	WaitingForInput
	// StoppedByTerminal means that the command was stopped because the terminal had stopped one of
	// its processes; see [ErrTerminal].
	StoppedByTerminal
	// OutOfMemory means that the command ended after the system had killed one of its processes
	// because memory ran out; see [ErrMemory].
	OutOfMemory
	// TooMuchOutput means that the command was stopped because it wrote too much; see
	// [Capture].
	TooMuchOutput
)

// String returns "exited", "idle timeout", "total timeout", "aborted", "waiting for
// input", "stopped by the terminal", "out of memory" or "too much output".
func (r Reason) String() string {
	switch r {
	case Exited:
		return "exited"
	case IdleTimeout:
		return "idle timeout"
	case TotalTimeout:
		return "total timeout"
	case Aborted:
		return "aborted"
	case WaitingForInput:
		return "waiting for input"
	case StoppedByTerminal:
		return "stopped by the terminal"
	case OutOfMemory:
		return "out of memory"
	case TooMuchOutput:
		return "too much output"
	}
	return "Reason(" + strconv.Itoa(int(r)) + ")"
}

// exitTooMuchOutput is the exit code of a process that SIGXFSZ has ended, as under ulimit -f.
const exitTooMuchOutput = 128 + 25

// exitCode is the exit code of a command that was stopped for this reason.
func (r Reason) exitCode() int {
	switch r {
	case TooMuchOutput:
		return exitTooMuchOutput
	case OutOfMemory:
		return exitKilled
	}
	return timeout.ExitTimeout
}

// exitKilled is the exit code of a process that SIGKILL has ended.
const exitKilled = 128 + 9

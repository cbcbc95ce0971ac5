package procgroup

import (
	"strconv"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Reason says why a command ended. The zero Reason is Exited. A Reason is an error, so that [errors.Is] finds the
// Reason of a command that was stopped for what it did, such as WaitingForInput, or that ran out of memory. After a
// limit or an abort the error is a [*timeout.Error], which matches [timeout.ErrIdle], [timeout.ErrTotal] or
// [timeout.ErrAborted].
type Reason int

const (
	// Exited means that the command ended by itself, or by a signal that was not sent to stop it, such as a signal of
	// [Process.Signal].
	Exited Reason = iota
	// IdleTimeout means that an idle limit, of the command or of an enclosing execution, stopped the command: there was
	// no output and, with an [Activity] or a [Notify], no work and no WATCHDOG=1.
	IdleTimeout
	// TotalTimeout means that a total limit, of the command or of an enclosing execution, or the deadline of the
	// context stopped the command.
	TotalTimeout
	// Aborted means that the command was stopped because the caller's context, or that of exec.CommandContext, was
	// cancelled, or because a function of the caller panicked or called runtime.Goexit.
	Aborted
	// WaitingForInput means that the command was stopped because it waited for input; see [Input].
	WaitingForInput
	// StoppedByTerminal means that the command was stopped because the terminal had stopped one of its processes, which
	// used it from the background. That process would not continue until somebody brought it to the foreground, so the
	// command is stopped within about a second, with the exit code 124.
	//
	// A command has a terminal only with [Terminal], if its standard input is the terminal of this program, or if
	// SysProcAttr.Setpgid or Foreground is set: otherwise it runs in a session of its own, and a process that opens the
	// terminal gets an error. In a terminal of its own, a command is not stopped while a process in the foreground
	// waits for input, as a shell does at its prompt, because that process can continue the stopped one. Linux only, on
	// amd64 and arm64.
	StoppedByTerminal
	// OutOfMemory means that the command ended, without being stopped, after the system had killed one of its processes
	// because memory ran out. The exit code is 137, even if the command's own process lived on and ended with 0. Linux
	// only, in a control group with a memory controller; see [Resources].
	OutOfMemory
	// TooMuchOutput means that the command was stopped because it wrote too much; see [Capture].
	TooMuchOutput
)

// Error returns "exited", "idle timeout", "total timeout", "aborted", "waiting for input", "stopped by the terminal",
// "out of memory" or "too much output", and for a number that is no Reason, such as 99, "Reason(99)".
func (r Reason) Error() string {
	if r < 0 || int(r) >= len(reasons) {
		return "Reason(" + strconv.Itoa(int(r)) + ")"
	}
	return reasons[r]
}

var reasons = [...]string{
	Exited: "exited", IdleTimeout: "idle timeout", TotalTimeout: "total timeout", Aborted: "aborted",
	WaitingForInput: "waiting for input", StoppedByTerminal: "stopped by the terminal",
	OutOfMemory: "out of memory", TooMuchOutput: "too much output",
}

// exitCode returns the exit code of a command that was stopped or ran out of memory. After TooMuchOutput and OutOfMemory
// it is the one that a shell reports for a process that was killed by SIGXFSZ, as under ulimit -f, and by SIGKILL.
func (r Reason) exitCode() int {
	switch r {
	case TooMuchOutput:
		return 128 + 25
	case OutOfMemory:
		return 128 + 9
	}
	return timeout.ExitTimeout
}

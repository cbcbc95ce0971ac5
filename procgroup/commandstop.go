package procgroup

import "github.com/tooldeadline/tooldeadline/timeout"

// A commandStop is the error of a command that was stopped for what it did, and not by a limit or by the caller. A
// commandStop with only reason and pid is the cause with which this package aborts the execution. Wait, hooks and the
// log get a second commandStop, with all fields, in place of the abort. After OutOfMemory there is only the second.
type commandStop struct {
	reason  Reason
	pid     int // the process that was stopped by the terminal
	message string
	err     error          // of the command and of the caller's reader and writers
	result  *Result        // nil in the cause of the abort
	figures *timeout.Error // the Figures of the execution
}

// stopOf returns the commandStop that is the cause of stop, the error of the execution. It returns nil for any other
// cause, and if stop is nil.
func stopOf(stop *timeout.Error) *commandStop {
	if stop == nil {
		return nil
	}
	c, _ := stop.Cause.(*commandStop)
	return c
}

func (e *commandStop) Error() string {
	if e.message == "" {
		return "procgroup: " + e.reason.Error()
	}
	return e.message
}

func (e *commandStop) Is(target error) bool { return target == e.reason }

func (e *commandStop) Unwrap() error { return e.err }

// Text returns [Result.Text] for the answer of an MCP tool. Package toolcall calls it.
func (e *commandStop) Text() string {
	if e.result == nil { // e is the cause of an abort
		return e.Error()
	}
	return e.result.Text()
}

// ExitCode returns 137 for OutOfMemory, 153 for TooMuchOutput, and otherwise 124, as for a limit.
func (e *commandStop) ExitCode() int { return e.reason.exitCode() }

// CommandStop returns the text of the reason, such as "too much output". It implements command.Stop, by which package
// timeout tells such a stop from other errors.
func (e *commandStop) CommandStop() string { return e.reason.Error() }

// Figures returns an error with the figures of the execution, such as its elapsed time, for the answer of an MCP tool,
// or nil if e is the cause of an abort. Unwrap does not return it, because e would then match timeout.ErrAborted.
func (e *commandStop) Figures() *timeout.Error { return e.figures }

package procgroup

import "github.com/tooldeadline/tooldeadline/timeout"

// A commandStop is the error of a command that was stopped for what it did, and not by a limit or by the
// caller. It is the cause with which this package aborts the execution, and then, completed, the error that is
// reported everywhere in place of the abort. If the system has stopped the command, there is no abort.
type commandStop struct {
	reason  Reason
	pid     int // the process that was stopped by the terminal
	message string
	err     error // of the command itself
	result  *Result
	figures *timeout.Error
}

// stopOf returns the commandStop that has stopped an execution, or nil if something else has.
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

// Text returns the text of the result for the answer of an MCP tool. Package toolcall calls it.
func (e *commandStop) Text() string {
	if e.result == nil { // the cause that has not been completed
		return e.Error()
	}
	return e.result.Text()
}

// ExitCode returns 124, as for a limit, but 137 if the system has killed a process for lack of memory, and
// 153 after too much output.
func (e *commandStop) ExitCode() int { return e.reason.exitCode() }

// CommandStop returns the text of the reason. Observers recognise a stop by this method.
func (e *commandStop) CommandStop() string { return e.reason.Error() }

// Figures returns the figures of the execution, for the outcome in the answer of an MCP tool. They are not in the tree
// of the error, where they would make it match an abort.
func (e *commandStop) Figures() *timeout.Error { return e.figures }

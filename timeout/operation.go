package timeout

import "strconv"

// An Operation says what an execution runs. It is for those that watch all executions of a
// process, see [Watch], and limits and outcomes do not depend on it: a trace does not call a
// command a tool.
type Operation uint8

const (
	// OperationTool is a tool, or whatever a program runs under limits of its own.
	OperationTool Operation = iota
	// OperationCommand is a command, as package procgroup runs it.
	OperationCommand
	// OperationHandler is an HTTP handler that serves a request, as package httptimeout runs it.
	OperationHandler
	// OperationRequest is a client's request that waits for a server, as package request sends
	// it, or a client's attempt to connect.
	OperationRequest
)

var operations = [...]string{"tool", "command", "handler", "request"}

// String returns "tool", "command", "handler" or "request".
func (o Operation) String() string {
	if int(o) < len(operations) {
		return operations[o]
	}
	return "Operation(" + strconv.Itoa(int(o)) + ")"
}

// WithOperation says what the execution runs, for [Snapshot]. Without this option it is
// OperationTool. Executions within do not inherit it.
func WithOperation(o Operation) Option {
	return optionFunc(func(s *settings) { s.operation = o })
}

package timeout

import "strconv"

// An Operation is the kind of work that an execution does. Watchers of a whole process (see [Watch]) distinguish
// executions by it, so that a trace does not call a command a tool. It affects neither limits nor outcomes, but the
// words of an Error's message.
type Operation uint8

const (
	// OperationTool is a tool, or anything else that a program runs under limits.
	OperationTool Operation = iota
	// OperationCommand is a command, as package procgroup runs it.
	OperationCommand
	// OperationHandler is an HTTP handler that serves a request, as package httptimeout runs it.
	OperationHandler
	// OperationRequest is a client's request to a server, as package request sends it, or a
	// client's attempt to connect.
	OperationRequest
)

// String returns "tool", "command", "handler" or "request", and for an invalid Operation its number, as in
// "Operation(7)".
func (o Operation) String() string {
	return word("Operation", int(o), "tool", "command", "handler", "request")
}

// word returns the word for a value or, if there is none, the type and the number of the value.
func word(typ string, value int, words ...string) string {
	if value >= 0 && value < len(words) && words[value] != "" {
		return words[value]
	}
	return typ + "(" + strconv.Itoa(value) + ")"
}

package adapter

import "github.com/tooldeadline/tooldeadline/progress/task"

// A Caller is the client that sends a request, as far as tasks are concerned.
type Caller struct {
	// Version is the protocol version of the request or, before 2026-07-28, of its connection.
	Version string
	// Declared reports whether the request's own capabilities have [task.ExtensionID] among their
	// extensions. In protocols before 2026-07-28 it is ignored, as they demand.
	Declared bool
	// Principal is the authenticated identity of the client, or "" without authentication. Session
	// is the connection or session of the request, or "" if there is none, as on stateless HTTP. A
	// task belongs to the principal if there is one, and otherwise to the session; a continuation
	// belongs to the session if there is one, and otherwise to the principal. If both are "", the
	// id alone decides. On stdio, any constant will do for Session.
	Principal, Session string
	// Name is what the client calls itself, as its clientInfo says.
	Name string
}

func (c *Caller) legacy() bool { return c.Version == string(task.Legacy) }
func (c *Caller) modern() bool { return c.Version >= string(task.Extension) }

// owner returns whose the client's tasks are, or its continuations. The two are kept apart, so
// that neither is found, listed or cancelled as the other.
func (c *Caller) owner(f task.Form) string {
	kind, first, second := "task", "principal:"+c.Principal, "session:"+c.Session
	switch {
	case f == task.Continued && c.Session != "", c.Principal == "":
		first = second
	}
	if c.Principal == "" && c.Session == "" {
		first = ""
	}
	if f == task.Continued {
		kind = "continuation"
	}
	return kind + "/" + first
}

// The codes of the errors with which calls and requests are answered.
const (
	codeMethodNotFound    = -32601
	codeInvalidParams     = -32602 // among others, for an unknown task
	codeInternal          = -32603
	codeMissingCapability = -32021 // the client has not declared what the call needs
)

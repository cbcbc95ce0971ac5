package adapter

import (
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Caller describes the client that sends a request, as far as tasks are concerned.
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
	// Name is the name of the client in its clientInfo.
	Name string
}

func (c *Caller) legacy() bool { return c.Version == string(task.Legacy) }
func (c *Caller) modern() bool { return c.Version >= string(task.Extension) }

// owner returns the owner under which the tasks or the continuations of the client are stored. The two owners differ,
// so that a task is never found, listed or cancelled as a continuation, or the reverse.
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

// A Call is one tools/call that may become a task.
type Call struct {
	Tool   string
	Caller Caller
	// Asked is "task" in the params, in JSON, or nil if they have none. Its "ttl" is how many milliseconds the
	// client wants the task to be kept. Asked is ignored in every protocol version but 2025-11-25, as the later
	// versions demand.
	Asked json.RawMessage
	// Soft and TaskOnly are the results of [policy.Policy.Soft] for the tool: how long the call runs before it may
	// become a task, where 0 means never, or at once if TaskOnly is set, and a negative value at once; and whether
	// the tool may only be called as a task or a continuation.
	Soft     time.Duration
	TaskOnly bool
	// Continuation says how a call goes on if its client does not support tasks. nil means that the
	// client waits for the result.
	Continuation *Continuation
	// Within is when the client has to have an answer, as [policy.Budget.Answer] returns it: at that time a call that may
	// become a task or a continuation becomes one, if it has not before. A call that has a Continuation may always become
	// one. The zero Budget means that the time is not known.
	Within policy.Budget

	await progress.Wait // of the tool's questions; see [Options.Await]
}

// A Continuation says how a call goes on if its client does not support tasks: the call is answered
// in time with a result that says that it is still running, and another tool waits for the rest.
type Continuation struct {
	// After is how long a call may take before it is continued, which should be less than the time for which the
	// client waits. A shorter soft limit above 0, and [Call.Within], make the continuation begin earlier. After is
	// also the longest time that one call of the wait tool waits. 0 or less means that only calls with Within or of
	// tools with a soft limit above 0 are continued, and that the wait tool waits at most 30 s.
	After time.Duration
	// Tool is the name of the wait tool; "" means wait_for_result.
	Tool string
}

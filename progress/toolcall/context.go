package toolcall

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/progress"
)

// A callContext is the context of a call. There are two for each call: Do starts the execution with one, which has
// starting set, and passes the other, which is derived from it, to the tool.
type callContext struct {
	context.Context
	call     *Call
	starting bool
	monitor  *heartbeat.Monitor // of the call's execution or, if starting, of the enclosing execution
	observer observe.Call       // of this call or of the one that encloses it; not set if starting
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	switch {
	case key == (callKey{}):
		return c
	case key == observe.Next: // it is the observer of this call, and not of one within
		return nil
	case key == observe.Of && !c.starting:
		return c.observer
	}
	return c.Context.Value(key)
}

func contextOf(ctx context.Context) *callContext {
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c
}

// FromContext returns the innermost call that ctx belongs to, or nil if ctx belongs to none. The caller must not change
// the Call.
//
// A tool may run a server itself, with a context derived from its own. The calls of that server have a different
// Session.
func FromContext(ctx context.Context) *Call {
	for c := contextOf(ctx); c != nil; c = contextOf(c.Context) {
		if !c.starting {
			return c.call
		}
	}
	return nil
}

// Direct reports whether the innermost execution of ctx is the execution of a call, and not another execution within
// the call. It returns false if ctx belongs to no call. An adapter calls Direct before it waits for a person on behalf
// of the tool: an inner execution may have its own limits on that wait.
func Direct(ctx context.Context) bool {
	c := contextOf(ctx)
	return c != nil && !c.starting && c.monitor == heartbeat.FromContext(ctx)
}

// Starting returns the call whose execution begins, if ctx is the context that the Context hook of [timeout.Hooks]
// receives. It returns nil for any other context, and if the execution does not belong to Do, for example because a
// tool has begun it. The caller must not change the Call. A tracer can continue the trace context in the Call's Meta.
func Starting(ctx context.Context) *Call {
	if c := contextOf(ctx); c != nil && c.starting && c.monitor == heartbeat.FromContext(ctx) {
		return c.call
	}
	return nil
}

// A Call is one tools/call as the server received it.
type Call struct {
	Tool string
	// Session identifies the connection or session of the call; see [FromContext]. If Go cannot compare its value, it
	// equals no other Session. A server with one connection may leave it nil.
	Session any
	// RequestID is the id of the request, and SessionID the id of its session, both as text, for logs
	// and traces. Both may be empty: Do does not use them.
	RequestID, SessionID string
	// Token is the progress token of the request, and Send sends a progress notification to the client. Do sends no
	// notifications if Token or Send is nil, if Token is neither a string nor a number, or for a call within another
	// call of the same Session.
	Token any
	Send  progress.Notifier
	// Meta is the _meta of the request, and Arguments holds its arguments, as a map[string]any or a json.RawMessage. Do
	// reads only timeoutMs in both and the budget in Meta. Both may be nil.
	Meta      map[string]any
	Arguments any
	// Outlives says that the call may continue after its client has been answered, as a task does, or that the tool
	// itself answers in time. The client's [policy.Budget] in Meta then does not limit the call.
	Outlives bool
	// Answered, if it is not nil, is called before Do returns, for a call that belongs to a [Drain]. It must arrange
	// that leave is called when the answer has been written to the client, or will never be written: the Drain waits
	// for that. If Answered is nil or panics, the call counts as answered when Do returns. Answered must not block: Do
	// waits for it.
	Answered func(leave func())
	// NearLimit, if it is not nil, is called before Do returns if the tool has returned in time, but so late that the
	// [Outcome] has a Left. It is not called if the limits are only observed, or if [OutcomeOf] finds an Outcome in the
	// error. The Outcome belongs in the _meta of the tool's result. NearLimit must not block: Do waits for it.
	NearLimit func(Outcome)
}

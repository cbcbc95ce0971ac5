package toolcall

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/progress"
)

// A callContext is the context of a tool or, before that, the one that its execution begins with.
type callContext struct {
	context.Context
	call     *Call
	starting bool
	monitor  *heartbeat.Monitor // of the call's execution, or where it is starting, of the enclosing one
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func contextOf(ctx context.Context) *callContext {
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c
}

// FromContext returns the innermost call that ctx belongs to, or nil. The call must not be changed.
//
// A tool may run a server itself and pass its context on to it. The calls of that server have a
// different Session.
func FromContext(ctx context.Context) *Call {
	for c := contextOf(ctx); c != nil; c = contextOf(c.Context) {
		if !c.starting {
			return c.call
		}
	}
	return nil
}

// Direct reports whether the innermost execution of ctx is that of its call, and not another one
// within the call. An adapter asks this before it waits on behalf of the tool, for example for a
// person, because an inner execution may already limit the question.
func Direct(ctx context.Context) bool {
	c := contextOf(ctx)
	return c != nil && !c.starting && c.monitor == heartbeat.FromContext(ctx)
}

// Starting returns the call whose execution begins, if ctx is the context that the Context hook of
// [timeout.Hooks] gets. It returns nil if the execution is not that of a call, but, for example,
// one that a tool begins itself. The call must not be changed. With it, a trace can continue the
// trace context in the client's Meta.
func Starting(ctx context.Context) *Call {
	if c := contextOf(ctx); c != nil && c.starting && c.monitor == heartbeat.FromContext(ctx) {
		return c.call
	}
	return nil
}

// A Call is one tools/call as the server received it.
type Call struct {
	Tool string
	// Session identifies the connection or session that the call came in on; see [FromContext]. A
	// Session that cannot be compared is equal to no other. A server with one connection may leave it nil.
	Session any
	// RequestID is the id of the request, and SessionID the id of its session, both as text, for logs
	// and traces. Both may be empty: Do does not use them.
	RequestID, SessionID string
	// Token is the progress token of the request, and Send sends a notification with it. If either is
	// nil, nothing is sent.
	Token any
	Send  progress.Notifier
	// Meta is the _meta of the request. Arguments holds its arguments, as a map[string]any or as JSON
	// in a json.RawMessage. Do looks only for timeoutMs in them and for a budget in Meta, so they may be left out.
	Meta      map[string]any
	Arguments any
	// Outlives says that the call may go on when its client has an answer, as a task does, or sees to that answer
	// itself: then the client's [policy.Budget] in Meta does not stop it.
	Outlives bool
	// Answered is called when Do returns, for a call that belongs to a [Drain]. It must arrange that leave is
	// called when the answer has been written to the client, or will never be written: the Drain waits for
	// that. If Answered is nil, or panics, the call counts as answered when Do returns. Do waits for it.
	Answered func(leave func())
	// NearLimit, if it is not nil, is called before Do returns if the tool has returned in time, but
	// so late that the [Outcome] has a Left. The Outcome is for the _meta of the tool's result. Do waits
	// for it.
	NearLimit func(Outcome)
	// Observer is the task that the call may become, which is notified of the execution of this call, and not of calls
	// within it: before the tool, on its goroutine, and at the end, before the last notification. Do waits for it. It
	// may be nil. For the client, a call within another call of the same session is part of that call, so if such a
	// call has no Observer, the Call that [FromContext] returns has the Observer of the enclosing call. To observe all
	// calls of a server, put hooks into the Options of [Settings].
	Observer observe.Call
}

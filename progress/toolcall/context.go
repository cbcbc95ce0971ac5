package toolcall

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
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

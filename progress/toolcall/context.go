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
// A tool may run a server itself and pass its context on to it. The calls of that server are
// different ones, with a Session of their own.
func FromContext(ctx context.Context) *Call {
	for c := contextOf(ctx); c != nil; c = contextOf(c.Context) {
		if !c.starting {
			return c.call
		}
	}
	return nil
}

// Direct reports whether ctx is under the limits of the call that it belongs to, and not under those
// of another execution within that call. An adapter asks this before it waits on behalf of the tool,
// for a person for example: an inner execution may have set a limit for the question already.
func Direct(ctx context.Context) bool {
	c := contextOf(ctx)
	return c != nil && !c.starting && c.monitor == heartbeat.FromContext(ctx)
}

// Starting returns, in the Context hook of [timeout.Hooks], the call whose execution begins, or nil
// if it is the execution of something else, such as one that a tool begins itself. The call must
// not be changed. It is for a trace that continues the one in the client's Meta.
func Starting(ctx context.Context) *Call {
	if c := contextOf(ctx); c != nil && c.starting && c.monitor == heartbeat.FromContext(ctx) {
		return c.call
	}
	return nil
}

// An Observer is told of the execution of one call. The task that the call may become is one. To
// observe all calls of a server, put hooks into its Options.
type Observer interface {
	// Started is called before the tool, with its context, on the tool's goroutine.
	Started(ctx context.Context)
	// Ended is called when the execution has ended, before Do waits for the last notification.
	Ended()
}

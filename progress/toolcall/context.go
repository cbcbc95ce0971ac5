package toolcall

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A callContext is the context of a tool.
type callContext struct {
	context.Context
	call    *Call
	monitor *heartbeat.Monitor // of the call's execution
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// FromContext returns the call that ctx belongs to, the innermost one, which must not be
// changed; nil where there is none.
//
// A tool may run a server itself and pass its context on to it. The calls of that server are
// others, and their Session tells them apart.
func FromContext(ctx context.Context) *Call {
	if c, _ := ctx.Value(callKey{}).(*callContext); c != nil {
		return c.call
	}
	return nil
}

// Direct reports whether ctx is under the limits of the call that it belongs to, and not under
// those of another execution within. It is for what waits on behalf of the tool, such as for a
// person: somebody nearer to the question may have set a limit for it.
func Direct(ctx context.Context) bool {
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c != nil && c.monitor == heartbeat.FromContext(ctx)
}

// A starting context is what the execution of a call begins with.
type starting struct {
	context.Context
	call   *Call
	around *heartbeat.Monitor // of the execution around the call, if there is one
}

type startingKey struct{}

func (s *starting) Value(key any) any {
	switch key {
	case startingKey{}:
		return s
	case observerKey{}: // it is this call's
		return nil
	}
	return s.Context.Value(key)
}

// Starting returns, in the Context hook of [timeout.Hooks], the call whose execution begins,
// which must not be changed; nil where it is another execution's, such as one that a tool
// begins itself. It is for a trace that goes on from what the client has put into Meta.
func Starting(ctx context.Context) *Call {
	if s, _ := ctx.Value(startingKey{}).(*starting); s != nil && s.around == heartbeat.FromContext(ctx) {
		return s.call
	}
	return nil
}

// An Observer learns of the execution of one call. It is for what goes around a call and is not the
// server's, such as a task that the call may become; hooks of the server's are among its Options.
type Observer interface {
	// Started is called before the tool, with its context, on the tool's goroutine.
	Started(ctx context.Context)
	// Ended is called when the execution has ended, before the last notification is waited for.
	Ended()
}

type observerKey struct{}

// WithObserver returns a context for one call: [Do] calls o for it, and not for calls within it.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

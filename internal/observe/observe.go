// Package observe defines the notifications that a tool call sends to the task that it may become.
package observe

import "context"

// A Call is notified of each execution that begins with a context from With. It must be safe for concurrent use.
type Call interface {
	// Started is called on the tool's goroutine, before the tool, with the context of the execution. It is not called
	// if the execution ends before it calls its function. For an abandoned function it may be called after Ended.
	Started(ctx context.Context)
	// Ended is called when the execution has ended, also if Started was not called. The tool call returns only after
	// Ended has returned.
	Ended()
}

// A Key is the key of an observer in a context.
type Key int

// Next is the observer of the next call that begins with a context, and Of that of the call that the context belongs
// to, or that encloses it in the same session.
const (
	Next Key = iota
	Of
)

// With returns a context with an observer of the calls that begin with it, but not of calls within those.
func With(ctx context.Context, c Call) context.Context { return context.WithValue(ctx, Next, c) }

// From returns the observer under a key, or nil if there is none.
func From(ctx context.Context, key Key) Call {
	c, _ := ctx.Value(key).(Call)
	return c
}

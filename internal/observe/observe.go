// Package observe defines the notifications that a tool call sends to the task that it may become.
package observe

import "context"

// A Call is notified of the execution of one call.
type Call interface {
	// Started is called before the tool, with its context, on the tool's goroutine.
	Started(ctx context.Context)
	// Ended is called when the execution has ended. The tool call returns only after Ended has returned.
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

// With returns a context with an observer of the call that begins with it.
func With(ctx context.Context, c Call) context.Context { return context.WithValue(ctx, Next, c) }

// From returns the observer under a key, or nil if there is none.
func From(ctx context.Context, key Key) Call {
	c, _ := ctx.Value(key).(Call)
	return c
}

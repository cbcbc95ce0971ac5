package request

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

type outgoingKey struct{}

// Outgoing returns a context for an execution in which a client waits for a server, as [Do]
// makes one for each request and the adapters make one to connect. [IsOutgoing] recognises it.
func Outgoing(ctx context.Context) context.Context {
	return context.WithValue(ctx, outgoingKey{}, heartbeat.FromContext(ctx))
}

// IsOutgoing reports, in the Context hook of [timeout.Hooks], whether the execution that
// begins is a client's, and no tool's: what watches all executions of a process, see
// [timeout.Watch], sees both. It is false for the executions within.
func IsOutgoing(ctx context.Context) bool {
	around, ok := ctx.Value(outgoingKey{}).(*heartbeat.Monitor)
	return ok && around == heartbeat.FromContext(ctx)
}

package mcpsdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

const methodElicit = "elicitation/create"

// elicit waits for a person on behalf of a tool (SPEC 7.9). The SDK also comes here with the
// questions that a tool returns as InputRequests to a client before 2026-07-28. From then
// on no server waits: the client asks the person between two calls of the tool, each of
// which is an execution of its own.
//
// Sampling is left alone: it is a program that answers, and one that does not is what the
// idle limit is for.
func elicit(ctx context.Context, what string, opts []progress.AwaitOption, ask func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if !toolcall.Direct(ctx) {
		// Somebody nearer to the question has set limits for it.
		defer heartbeat.Hold(ctx)()
		return ask(ctx)
	}
	return progress.Await(ctx, what, ask, opts...)
}

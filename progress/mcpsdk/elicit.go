package mcpsdk

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// elicit waits for a person on behalf of a tool (SPEC 7.9). The SDK also comes here with the
// questions that a tool returns as InputRequests to a client before 2026-07-28. From then
// on no server waits: the client asks the person between two calls of the tool, each of
// which is an execution of its own.
//
// Other requests, such as sampling, are left alone unless Requests says otherwise: it is a
// program that answers, and one that does not is what the idle limit is for.
func (s *settings) elicit(ctx context.Context, session mcp.Session, question *mcp.ElicitParams, ask func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if !toolcall.Direct(ctx) {
		// Somebody nearer to the question has set limits for it.
		defer heartbeat.Hold(ctx)()
		return ask(ctx)
	}
	return adapter.AwaitAnswer(ctx, adapter.TaskOf(ctx, session), question.Message, question.URL, s.Await, ask)
}

// holds reports whether a message that is being sent is a request that holds the idle check
// (SPEC 7.10). Incoming messages pass here too, and are never under the limits of a call of
// their own session.
func (s *settings) holds(ctx context.Context, method string, req mcp.Request) bool {
	if s.Requests == nil || method == methodElicit || strings.HasPrefix(method, "notifications/") {
		return false
	}
	call := toolcall.FromContext(ctx)
	return call != nil && call.Session == any(req.GetSession()) && toolcall.Direct(ctx)
}

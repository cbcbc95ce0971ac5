package mcpsdk

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// elicit sends the question of a tool with ask, and holds the idle check while a person answers (SPEC 7.9).
// The SDK also calls it with the questions that a tool returns as InputRequests to a client before
// 2026-07-28. From that version on the client asks the person between two calls of the tool, and each call
// is an execution of its own.
//
// Other requests, such as sampling, hold the idle check only with Requests: a program answers them, and the
// idle limit stops the call if it does not.
func (s *settings) elicit(ctx context.Context, session mcp.Session, question *mcp.ElicitParams, ask func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if !toolcall.Direct(ctx) {
		// The tool asks under progress.Await or an execution of its own, whose limits apply.
		defer heartbeat.Hold(ctx)()
		return ask(ctx)
	}
	return adapter.Await(ctx, session, methodElicit, question.Message, question.URL, s.Await, ask)
}

// holds reports whether a message is a request to the client that holds the idle check of its tool (SPEC 7.10).
// Notifications do not, and an elicitation is left to elicit. The middleware also calls holds for incoming messages,
// whose contexts never belong to a call of their own session.
func (s *settings) holds(ctx context.Context, method string, req mcp.Request) bool {
	if s.Requests == nil || method == methodElicit || strings.HasPrefix(method, "notifications/") {
		return false
	}
	call := toolcall.FromContext(ctx)
	return call != nil && call.Session == any(req.GetSession()) && toolcall.Direct(ctx)
}

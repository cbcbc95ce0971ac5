package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
)

// Elicit is MCPServer.RequestElicitation under [progress.Await]: the idle check is held
// while the person is asked, keep-alive notifications say what for, which is the message
// of the request, and an answer is waited for no longer than 30 s, or what
// [progress.WithLimit] says. Return its error from the tool as it is: the client then
// gets a result with the text of [progress.ErrNoAnswer].
//
// The server is that of ctx. Without one the error is [server.ErrNoActiveSession].
func Elicit(ctx context.Context, request mcp.ElicitationRequest, opts ...progress.AwaitOption) (*mcp.ElicitationResult, error) {
	s := server.ServerFromContext(ctx)
	if s == nil {
		return nil, server.ErrNoActiveSession
	}
	return progress.Await(ctx, request.Params.Message, func(ctx context.Context) (*mcp.ElicitationResult, error) {
		return s.RequestElicitation(ctx, request)
	}, opts...)
}

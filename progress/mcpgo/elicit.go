package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
)

// Elicit is MCPServer.RequestElicitation under [progress.Await]: the idle check is held while
// the person is asked, keep-alive notifications say what for, which is the message of the
// request, and an answer is waited for no longer than 30 s, or what [progress.WithLimit] says.
// Return its error from the tool as it is: the client then has a result with the text of
// [progress.ErrNoAnswer]. With [Serve] or [WrapHTTP], a question for whose answer nobody waits
// any more is cancelled at the client.
//
// The server is that of ctx. Without one the error is [server.ErrNoActiveSession].
func Elicit(ctx context.Context, request mcp.ElicitationRequest, opts ...progress.AwaitOption) (*mcp.ElicitationResult, error) {
	s := server.ServerFromContext(ctx)
	if s == nil {
		return nil, server.ErrNoActiveSession
	}
	return progress.Await(ctx, request.Params.Message, func(ctx context.Context) (*mcp.ElicitationResult, error) {
		return elicit(ctx, s, request)
	}, opts...)
}

// elicit asks, and takes the question back if ctx ends before the answer has come.
func elicit(ctx context.Context, s *server.MCPServer, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	w := wireOf(ctx, server.ClientSessionFromContext(ctx))
	if w == nil {
		return s.RequestElicitation(ctx, request)
	}
	request, end := w.ask(request, func(params map[string]any) {
		_ = s.SendNotificationToClient(ctx, string(mcp.MethodNotificationCancelled), params)
	})
	res, err := s.RequestElicitation(ctx, request)
	if err != nil && ctx.Err() != nil {
		end(context.Cause(ctx).Error())
	} else {
		end("")
	}
	return res, err
}

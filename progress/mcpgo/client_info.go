package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// clientOf returns what the client calls itself: with each request, or at initialize.
func clientOf(ctx context.Context) adapter.Client {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientInfo != nil {
		return adapter.Client{Name: info.ClientInfo.Name, Version: info.ClientInfo.Version}
	}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		info := session.GetClientInfo()
		return adapter.Client{Name: info.Name, Version: info.Version}
	}
	return adapter.Client{}
}

// greet adds the hooks that say which host a client is.
func (s *settings) greet(h *server.Hooks) {
	h.AddAfterInitialize(func(_ context.Context, _ any, r *mcp.InitializeRequest, _ *mcp.InitializeResult) {
		s.Initialized(adapter.Client{Name: r.Params.ClientInfo.Name, Version: r.Params.ClientInfo.Version})
	})
	h.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, _ *mcp.DiscoverResult) {
		s.Initialized(clientOf(ctx))
	})
}

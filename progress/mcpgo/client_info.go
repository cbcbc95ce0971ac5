package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// clientOf returns a Caller with the name of the client, from the request or else from initialize.
func clientOf(ctx context.Context) adapter.Caller {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientInfo != nil {
		return adapter.Caller{Name: info.ClientInfo.Name}
	}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		info := session.GetClientInfo()
		return adapter.Caller{Name: info.Name}
	}
	return adapter.Caller{}
}

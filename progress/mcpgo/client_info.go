package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// clientOf describes the client of a request, but for its principal and its session. Declared is false without a wire,
// over which alone a task can be returned.
func clientOf(ctx context.Context) (c adapter.Caller) {
	session, info := server.ClientSessionFromContext(ctx), server.RequestProtocolInfoFromContext(ctx)
	if info != nil && info.ClientInfo != nil {
		c.Name = info.ClientInfo.Name
	} else if with, ok := session.(server.SessionWithClientInfo); ok {
		c.Name = with.GetClientInfo().Name
	}
	c.Version = server.RequestProtocolVersion(ctx)
	w := wireOf(ctx, session)
	if c.Version == "" && w != nil && w.header != nil {
		c.Version = w.header.Get(mcp.HeaderProtocolVersion) // without a session, mcp-go does not return the version
	}
	if w != nil && info != nil && info.ClientCapabilities != nil {
		_, c.Declared = info.ClientCapabilities.Extensions[task.ExtensionID]
	}
	return c
}

// client describes the client of a request.
func (s *settings) client(ctx context.Context) adapter.Caller {
	c := clientOf(ctx)
	if s.Principal != nil {
		c.Principal = s.Principal(ctx)
	}
	if session := server.ClientSessionFromContext(ctx); session != nil {
		c.Session = session.SessionID()
	}
	return c
}

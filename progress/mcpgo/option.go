package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of [Install] and [Handler]. See [adapter.Options] for the fields.
type Options = adapter.Options

// A Continuation configures how calls of clients that do not support tasks are continued. See [adapter.Continuation]
// for the fields.
type Continuation = adapter.Continuation

// settings holds the Options of a server or a Handler, and the state of the adapter for it.
type settings struct {
	*adapter.Server
	offered bool   // tasks are offered, and not only continuations
	watch   *watch // nil without Install
}

// ofServer returns the settings of a server.
func ofServer(o *Options) *settings {
	s := &settings{Server: adapter.NewServer(o, false), offered: o != nil && o.Tasks != nil}
	if s.Requests != nil {
		panic(&timeout.ConfigError{Key: "Options.Requests", Value: "set", Accepted: "the Wait that Sample takes: mcp-go does not show the requests of a tool"})
	}
	return s
}

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

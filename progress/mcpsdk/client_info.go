package mcpsdk

import (
	"context"
	"crypto/rand"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// clientOf returns a Caller with the name of the client, from the request or else from initialize.
func clientOf(req mcp.Request) adapter.Caller {
	if info, ok := metaOf(req)[mcp.MetaKeyClientInfo].(map[string]any); ok {
		name, _ := info["name"].(string)
		return adapter.Caller{Name: name}
	}
	p, ok := req.GetParams().(*mcp.InitializeParams)
	if session, is := req.GetSession().(*mcp.ServerSession); !ok && is && session != nil {
		p = session.InitializeParams()
	}
	if p == nil || p.ClientInfo == nil {
		return adapter.Caller{}
	}
	return adapter.Caller{Name: p.ClientInfo.Name}
}

func metaOf(req mcp.Request) map[string]any {
	if p := req.GetParams(); !missing(p) {
		return p.GetMeta()
	}
	return nil
}

// callerOf describes the client that has sent a request.
func (s *settings) callerOf(ctx context.Context, req mcp.Request) adapter.Caller {
	session, _ := req.GetSession().(*mcp.ServerSession)
	extra, meta := req.GetExtra(), metaOf(req)
	c := clientOf(req)
	if c.Version = versionOf(session, meta); c.Version >= sinceResultType {
		c.Declared = declaresTasks(meta)
	}
	if s.Principal != nil {
		c.Principal = s.Principal(ctx)
	} else if extra != nil && extra.TokenInfo != nil {
		c.Principal = extra.TokenInfo.UserID
	}
	if extra == nil {
		c.Session = s.names.of(session, func() string { return "connection " + rand.Text() })
		return c
	}
	c.Session = session.ID() // "" over stateless HTTP
	return c
}

// versionOf returns the protocol version of a request, or "" if it is not known. Before 2026-07-28 only the version
// that the client requested at initialize is available. versionOf cuts it to 2025-11-25, the newest that the server
// agrees to there.
func versionOf(session *mcp.ServerSession, meta map[string]any) string {
	if v, ok := meta[mcp.MetaKeyProtocolVersion].(string); ok {
		return v
	}
	if p := session.InitializeParams(); p != nil {
		return min(p.ProtocolVersion, sinceTasks)
	}
	return ""
}

// declaresTasks reports whether the capabilities in the _meta of a request have the extension for tasks. It reads the
// decoded maps, because decoding them to the SDK's types takes longer than the rest of a call.
func declaresTasks(meta map[string]any) bool {
	capabilities, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	return extensions[task.ExtensionID] != nil
}

package mcpsdk

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// clientOf returns what the client calls itself: with each request, or at initialize.
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

package mcpsdk

import (
	"net/url"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// label returns the fields of a client's log records about a request beside its method (SPEC 8.10): the tool that it
// calls, and the server, by the name in its serverInfo or, before that is known, by its address.
func label(req mcp.Request, a *attempt) (tool, server string) {
	if p, ok := req.GetParams().(*mcp.CallToolParams); ok && p != nil {
		tool = p.Name
	}
	if session, ok := req.GetSession().(*mcp.ClientSession); ok && session != nil {
		if is := session.InitializeResult(); is != nil && is.ServerInfo != nil && is.ServerInfo.Name != "" {
			return tool, is.ServerInfo.Name
		}
	}
	if a != nil {
		server = addressOf(a.transport)
	}
	return tool, server
}

// addressOf returns how a server is reached, without anything secret, or "".
func addressOf(t mcp.Transport) string {
	switch t := t.(type) {
	case *mcp.StreamableClientTransport:
		return hostAndPath(t.Endpoint)
	case *mcp.SSEClientTransport:
		return hostAndPath(t.Endpoint)
	case *mcp.CommandTransport:
		if t.Command != nil {
			return filepath.Base(t.Command.Path)
		}
	}
	return ""
}

func hostAndPath(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Host + u.Path
}

package mcpsdk

import (
	"net/url"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// label returns two fields of a client's log records about a request (SPEC 8.10): the name of the called tool, or "",
// and the server. The server is the name in its serverInfo or, before the handshake, its address.
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

// addressOf returns the host and path of a server, or the name of its command. It leaves out queries and arguments,
// which may contain secrets. It returns "" for any other transport.
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

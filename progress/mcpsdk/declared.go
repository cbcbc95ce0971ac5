package mcpsdk

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// declaredLimits returns the limits that the server has declared for a request, cut to the ceiling, or nil if there are
// none.
func (l *limiter) declaredLimits(method string, req mcp.Request) *request.Limits {
	if l.ceiling == nil {
		return nil
	}
	var tool string
	if p, ok := req.GetParams().(*mcp.CallToolParams); ok && p != nil {
		tool = p.Name
	}
	return l.declared.of(req.GetSession()).Limits(method, tool, *l.ceiling)
}

// hear records the limits that an answer of a server declares.
func (l *limiter) hear(session mcp.Session, res mcp.Result) {
	known := l.declared.of(session)
	if l.ceiling == nil || known == nil {
		return
	}
	var capabilities *mcp.ServerCapabilities
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		for _, t := range r.Tools {
			if t != nil && t.Name != "" { // "" is the key of the limits of the server
				known.Tool(t.Name, t.Meta)
			}
		}
	case *mcp.InitializeResult:
		capabilities = r.Capabilities
	case *mcp.DiscoverResult:
		capabilities = r.Capabilities
	}
	if capabilities != nil {
		known.Tool("", capabilities.Extensions)
	}
}

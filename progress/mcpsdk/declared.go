package mcpsdk

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// declarations holds the limits that each server has declared. A nil *declarations records none.
type declarations struct {
	ceiling request.Limits
	perSession[request.Declarations]
}

func newDeclarations(ceiling *request.Limits) *declarations {
	if ceiling == nil {
		return nil
	}
	return &declarations{ceiling: *ceiling}
}

// limits returns the limits of a request, or nil if the server has declared none for the request.
func (d *declarations) limits(method string, req mcp.Request) *request.Limits {
	if d == nil {
		return nil
	}
	var tool string
	if p, ok := req.GetParams().(*mcp.CallToolParams); ok && p != nil {
		tool = p.Name
	}
	return d.of(req.GetSession()).Limits(method, tool, d.ceiling)
}

// hear records the limits that an answer of a server declares.
func (d *declarations) hear(session mcp.Session, res mcp.Result) {
	if d == nil {
		return
	}
	known := d.of(session)
	if known == nil {
		return
	}
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		for _, t := range r.Tools {
			if t != nil && t.Name != "" { // "" is the key of the limits of the server
				known.Tool(t.Name, t.Meta)
			}
		}
	case *mcp.InitializeResult:
		if r.Capabilities != nil {
			known.Tool("", r.Capabilities.Extensions)
		}
	case *mcp.DiscoverResult:
		if r.Capabilities != nil {
			known.Tool("", r.Capabilities.Extensions)
		}
	}
}

package mcpsdk

import (
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// declared returns a copy of a result of tools/list, initialize or server/discover with the declared limits, and any
// other result unchanged. The tools and capabilities in it are copied too, because the server shares them.
func (s *settings) declared(res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		if r == nil {
			break
		}
		out := *r
		out.Tools = make([]*mcp.Tool, len(r.Tools))
		for i, t := range r.Tools {
			out.Tools[i] = s.stamped(t)
		}
		return &out
	case *mcp.InitializeResult:
		if r == nil {
			break
		}
		out := *r
		out.Capabilities = s.stampedCapabilities(r.Capabilities)
		return &out
	case *mcp.DiscoverResult:
		if r == nil {
			break
		}
		out := *r
		out.Capabilities = s.stampedCapabilities(r.Capabilities)
		return &out
	}
	return res
}

func (s *settings) stamped(t *mcp.Tool) *mcp.Tool {
	if t == nil {
		return t
	}
	limits, ok := s.Declaration(t.Name, true)
	if !ok {
		return t
	}
	out := *t
	if out.Meta = maps.Clone(t.Meta); out.Meta == nil {
		out.Meta = make(mcp.Meta, 1)
	}
	out.Meta[policy.DeclarationKey] = limits
	return &out
}

func (s *settings) stampedCapabilities(c *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	limits, ok := s.Declaration("", true)
	if !ok {
		return c
	}
	var out mcp.ServerCapabilities
	if c != nil {
		out = *c
	}
	out.Extensions = maps.Clone(out.Extensions)
	out.AddExtension(policy.DeclarationKey, limits.Object())
	return &out
}

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

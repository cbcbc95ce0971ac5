package mcpsdk

import (
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// WithDeclaredLimits makes the server declare the limits of its tools, so that a client knows before a
// call how long the call may take. Each tool has its limits in its _meta, and capabilities.extensions
// has the limits for tools that the policy does not name, both under [policy.DeclarationKey]. The
// limits are those of the policy and the environment when the tools are listed. A tool whose limits
// cannot be read declares none; its calls return the error.
//
// It is for [Install] and [Middleware]. The limits that [Handler] adds for one tool are not declared.
func WithDeclaredLimits() MiddlewareOption {
	return middlewareOption(func(s *settings) { s.declare = true })
}

// WithDeclaredMethods does what [WithDeclaredLimits] does, and also declares limits of requests that
// call no tool, by their method, such as "tools/list", or by a prefix with a star, such as
// "resources/*". It enforces nothing: the server declares what the program tells it.
//
//	mcpsdk.WithDeclaredMethods(map[string]policy.Declaration{"resources/*": {Total: time.Minute}})
func WithDeclaredMethods(limits map[string]policy.Declaration) MiddlewareOption {
	return middlewareOption(func(s *settings) { s.declare, s.methods = true, maps.Clone(limits) })
}

// declared adds to a result what is declared in it. Results may be shared by calls, and tools are
// the server's own, so both are copied.
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
	calls := &s.calls
	if s.continuation != nil && t.Name == s.continuation.Name() {
		calls = &s.waiting
	}
	limits, err := calls.Declaration(t.Name)
	if err != nil {
		return t
	}
	if s.offered {
		limits.Soft, _ = calls.Policy.Soft(t.Name)
	}
	out := *t
	if out.Meta = maps.Clone(t.Meta); out.Meta == nil {
		out.Meta = make(mcp.Meta, 1)
	}
	out.Meta[policy.DeclarationKey] = limits
	return &out
}

func (s *settings) stampedCapabilities(c *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	limits, err := s.calls.Declaration("")
	if err != nil {
		return c
	}
	limits.Methods = s.methods
	var out mcp.ServerCapabilities
	if c != nil {
		out = *c
	}
	out.Extensions = maps.Clone(out.Extensions)
	out.AddExtension(policy.DeclarationKey, limits.Object())
	return &out
}

// UseDeclared makes [Limit] use the limits that the server has declared for a tool, see
// [WithDeclaredLimits], or for a method, see [WithDeclaredMethods]. Declared limits take precedence
// over the defaults, but not over those of [WithLimits] and of perMethod. So if perMethod is
// [request.DefaultLimits], they have no effect on the methods in it, unless the entries of these
// methods are deleted.
//
// The client knows the declarations for the server as a whole and for methods from the handshake, and
// those for tools from each ListTools. A server may declare anything, so the ceiling bounds what it
// declares; see [adapter.Declarations.Limits]. A zero ceiling means no bound.
func UseDeclared(ceiling ClientLimits) LimitOption {
	return limitFunc(func(l *limiter) { l.declared = &declarations{ceiling: ceiling} })
}

// declarations has what each server has declared. A nil *declarations takes in nothing.
type declarations struct {
	ceiling request.Limits
	perSession[adapter.Declarations]
}

// limits returns the limits of a request, nil where nothing has been declared for it.
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

// hear takes in what a server has answered.
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
			if t != nil {
				known.Tool(t.Name, t.Meta)
			}
		}
	case *mcp.InitializeResult:
		if r.Capabilities != nil {
			known.Server(r.Capabilities.Extensions)
		}
	case *mcp.DiscoverResult:
		if r.Capabilities != nil {
			known.Server(r.Capabilities.Extensions)
		}
	}
}

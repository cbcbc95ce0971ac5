package mcpgo

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// declareIn adds the hooks that declare limits. mcp-go calls them with results that are the request's
// own; the values behind the pointers in them are the server's, and are copied.
func (s *settings) declareIn(h *server.Hooks) {
	h.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		tasks := wireOf(ctx, server.ClientSessionFromContext(ctx)) != nil
		for i, t := range res.Tools {
			if limits, ok := s.Declaration(t.Name, tasks); ok {
				res.Tools[i].Meta = stamped(t.Meta, limits)
			}
		}
	})
	h.AddAfterInitialize(func(_ context.Context, _ any, _ *mcp.InitializeRequest, res *mcp.InitializeResult) {
		s.declareFor(&res.Capabilities)
	})
	h.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, res *mcp.DiscoverResult) {
		s.declareFor(&res.Capabilities)
	})
}

func stamped(meta *mcp.Meta, limits policy.Declaration) *mcp.Meta {
	out := new(mcp.Meta)
	if meta != nil {
		*out = *meta
		out.AdditionalFields = maps.Clone(meta.AdditionalFields)
	}
	out.SetMetaField(policy.DeclarationKey, limits)
	return out
}

func (s *settings) declareFor(c *mcp.ServerCapabilities) {
	if limits, ok := s.Declaration("", true); ok {
		c.Extensions = withExtension(c.Extensions, policy.DeclarationKey, limits)
	}
}

func withExtension(extensions map[string]any, name string, value any) map[string]any {
	out := make(map[string]any, len(extensions)+1)
	maps.Copy(out, extensions)
	out[name] = value
	return out
}

// declarations has what the server has declared. A nil *declarations takes in nothing.
type declarations struct {
	ceiling request.Limits
	known   request.Declarations
}

func newDeclarations(ceiling *request.Limits) *declarations {
	if ceiling == nil {
		return nil
	}
	return &declarations{ceiling: *ceiling}
}

// limits returns the limits of a request, nil where nothing has been declared for it.
func (d *declarations) limits(r transport.JSONRPCRequest) *request.Limits {
	if d == nil {
		return nil
	}
	if r.Method != string(mcp.MethodToolsCall) {
		return d.known.Limits(r.Method, "", d.ceiling)
	}
	name, ok := "", false
	switch p := r.Params.(type) {
	case mcp.CallToolParams:
		name, ok = p.Name, true
	default:
		ok = json.Unmarshal(fieldsOf(p)["name"], &name) == nil
	}
	if !ok {
		return nil
	}
	return d.known.Limits(r.Method, name, d.ceiling)
}

// hear takes in what the server has answered.
func (d *declarations) hear(method string, resp *transport.JSONRPCResponse) {
	if d == nil || resp == nil || resp.Error != nil {
		return
	}
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsList:
		var list struct {
			Tools []struct {
				Name string         `json:"name"`
				Meta map[string]any `json:"_meta"`
			} `json:"tools"`
		}
		if adapter.Unmarshal(resp.Result, &list) == nil {
			for _, t := range list.Tools {
				d.known.Tool(t.Name, t.Meta)
			}
		}
	case mcp.MethodInitialize, mcp.MethodServerDiscover:
		var res struct {
			Capabilities struct {
				Extensions map[string]any `json:"extensions"`
			} `json:"capabilities"`
		}
		if adapter.Unmarshal(resp.Result, &res) == nil {
			d.known.Server(res.Capabilities.Extensions)
		}
	}
}

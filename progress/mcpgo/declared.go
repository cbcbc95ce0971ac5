package mcpgo

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// declarations holds the limits that the server has declared, cut to a ceiling. A nil *declarations records none.
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

// limits returns the declared limits of a request, or nil if there are none.
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

// hear records the limits that an answer of the server declares.
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
				if t.Name != "" { // "" is the key of the limits of the server
					d.known.Tool(t.Name, t.Meta)
				}
			}
		}
	case mcp.MethodInitialize, mcp.MethodServerDiscover:
		var res struct {
			Capabilities struct {
				Extensions map[string]any `json:"extensions"`
			} `json:"capabilities"`
		}
		if adapter.Unmarshal(resp.Result, &res) == nil {
			d.known.Tool("", res.Capabilities.Extensions)
		}
	}
}

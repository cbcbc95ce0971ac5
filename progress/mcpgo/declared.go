package mcpgo

import (
	"encoding/json"
	"errors"

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
func (d *declarations) hear(method string, said heard) {
	if d == nil {
		return
	}
	if method != methodListing {
		d.known.Tool("", said.Capabilities.Extensions)
	}
	for _, t := range said.Tools {
		if t.Name != "" { // "" is the key of the limits of the server
			d.known.Tool(t.Name, t.Meta)
		}
	}
}

// A heard has the fields that this package reads of an answer to initialize, server/discover or tools/list.
type heard struct {
	Version      string `json:"protocolVersion"`
	ServerInfo   info   `json:"serverInfo"`
	Capabilities struct {
		Extensions map[string]any `json:"extensions"`
		Tasks      struct {
			Requests struct {
				Tools struct {
					Call *struct{} `json:"call"`
				} `json:"tools"`
			} `json:"requests"`
		} `json:"tasks"`
	} `json:"capabilities"`
	Meta struct {
		ServerInfo info `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
	Tools []struct {
		Name        string         `json:"name"`
		Meta        map[string]any `json:"_meta"`
		Annotations struct {
			ReadOnly   bool `json:"readOnlyHint"`
			Idempotent bool `json:"idempotentHint"`
		} `json:"annotations"`
		Execution struct {
			TaskSupport mcp.TaskSupport `json:"taskSupport"`
		} `json:"execution"`
	} `json:"tools"`
	Next string `json:"nextCursor"`
}

type info struct {
	Name string `json:"name"`
}

// hear reads the answer to a request. It returns false for an error, for any other method, and if readers may find
// different values in the answer. Of a field of a wrong type nothing is read.
func hear(method string, resp *transport.JSONRPCResponse, err error) (said heard, ok bool) {
	switch mcp.MCPMethod(method) {
	case mcp.MethodInitialize, mcp.MethodServerDiscover, mcp.MethodToolsList:
		if err == nil && resp != nil && resp.Error == nil && !errors.As(adapter.Unmarshal(resp.Result, &said), new(*adapter.AmbiguousError)) {
			return said, true
		}
	}
	return heard{}, false
}

package mcpgo

import (
	"errors"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

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

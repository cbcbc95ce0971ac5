package mcpgo

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
)

// The params of a request are a struct of mcp's or, with the newer protocol, an object whose
// fields have been marshalled. The first of the two is what most calls have; what neither
// is goes through JSON.

const (
	metaKey  = "_meta"
	tokenKey = "progressToken" // in _meta
)

// ownToken returns the caller's own progress token, nil where there is none.
func ownToken(params any) any {
	if p, ok := params.(mcp.CallToolParams); ok {
		if p.Meta == nil {
			return nil
		}
		return p.Meta.ProgressToken
	}
	fields, ok := params.(map[string]json.RawMessage)
	if !ok {
		fields = fieldsOf(params)
	}
	if !bytes.Contains(fields[metaKey], []byte(tokenKey)) {
		return nil
	}
	meta, _ := metaOf(fields)
	if token := meta[tokenKey]; token != nil && string(token) != "null" {
		return token
	}
	return nil
}

// withToken returns a copy of the params with another token. Those that cannot take one are
// given back as they are, and so are without a reset.
func withToken(params any, token string) any {
	if p, ok := params.(mcp.CallToolParams); ok {
		meta := new(mcp.Meta)
		if p.Meta != nil {
			*meta = *p.Meta
		}
		meta.ProgressToken = token
		p.Meta = meta
		return p
	}
	fields := fieldsOf(params)
	meta, ok := metaOf(fields)
	if !ok {
		return params
	}
	meta[tokenKey], _ = json.Marshal(token)
	fields[metaKey], _ = json.Marshal(meta)
	return fields
}

// fieldsOf returns a copy of the params as an object, nil where they are none.
func fieldsOf(params any) map[string]json.RawMessage {
	if fields, ok := params.(map[string]json.RawMessage); ok && fields != nil {
		return maps.Clone(fields)
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil
	}
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	if fields == nil { // of null
		fields = make(map[string]json.RawMessage)
	}
	return fields
}

func metaOf(fields map[string]json.RawMessage) (meta map[string]json.RawMessage, ok bool) {
	if fields == nil {
		return nil, false
	}
	if raw := fields[metaKey]; raw != nil && json.Unmarshal(raw, &meta) != nil {
		return nil, false
	}
	if meta == nil {
		meta = make(map[string]json.RawMessage)
	}
	return meta, true
}

// isTask reports whether the params ask for a task, which has a cancellation of its own.
func isTask(params any) bool {
	if p, ok := params.(mcp.CallToolParams); ok {
		return p.Task != nil
	}
	task := fieldsOf(params)["task"]
	return task != nil && string(task) != "null"
}

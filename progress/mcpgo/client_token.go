package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The params of a request are a struct of package mcp or, from protocol 2026-07-28 on, a
// map[string]json.RawMessage. The functions of this file handle mcp.CallToolParams, which most calls
// have, and that map directly. They convert any other params to such a map through JSON.

const (
	metaKey  = "_meta"
	tokenKey = "progressToken" // in _meta
)

// ownToken returns the progress token in the params of a request, or nil if they have none.
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

// stamp returns a copy of the params with token as the progress token, unless token is "", and with the budget of a
// tools/call: the shorter one of the limits in ctx and the budget that the params have. Params that are not an object
// are returned unchanged, and no progress renews the limit of their request.
func stamp(ctx context.Context, method string, params any, token string) any {
	var budget policy.Budget
	if method == string(mcp.MethodToolsCall) {
		budget = request.BudgetOf(ctx, token != "")
	}
	p, ok := params.(mcp.CallToolParams)
	if !ok {
		return stampFields(params, token, budget)
	}
	meta := new(mcp.Meta)
	if p.Meta != nil {
		*meta = *p.Meta
		meta.AdditionalFields = maps.Clone(meta.AdditionalFields)
		own, _ := policy.ReadBudget(meta.AdditionalFields) // the caller may forward a call that has a budget
		budget = budget.Shorter(own)
	}
	if token != "" {
		meta.ProgressToken = token
	}
	if budget != (policy.Budget{}) {
		meta.SetMetaField(policy.BudgetKey, budget.Object())
	} else if token == "" {
		return params
	}
	p.Meta = meta
	return p
}

func stampFields(params any, token string, budget policy.Budget) any {
	if token == "" && budget == (policy.Budget{}) {
		return params
	}
	fields := fieldsOf(params)
	meta, ok := metaOf(fields)
	if !ok {
		return params
	}
	if token != "" {
		meta[tokenKey], _ = json.Marshal(token)
	}
	if own := meta[policy.BudgetKey]; own != nil {
		b, _ := policy.ReadBudget(map[string]any{policy.BudgetKey: own})
		budget = budget.Shorter(b)
	}
	if budget != (policy.Budget{}) {
		meta[policy.BudgetKey], _ = json.Marshal(budget.Object())
	}
	fields[metaKey], _ = json.Marshal(meta)
	return fields
}

// fieldsOf returns a copy of the params as an object, or nil if they are not an object. It returns an empty map for
// nil.
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
	if fields == nil { // the params are null
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

// isTask reports whether the params of a call ask for a task. A task is cancelled with tasks/cancel.
func isTask(params any) bool {
	task := fieldsOf(params)["task"]
	return task != nil && string(task) != "null"
}

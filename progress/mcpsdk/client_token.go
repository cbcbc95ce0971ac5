package mcpsdk

import (
	"context"
	"maps"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const progressTokenKey = "progressToken" // in _meta

func missing(p mcp.Params) bool {
	if p == nil {
		return true
	}
	v := reflect.ValueOf(p)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func progressToken(req mcp.Request) any {
	p := req.GetParams()
	if missing(p) {
		return nil
	}
	return p.GetMeta()[progressTokenKey]
}

// stamp returns a copy of a request with token as the progress token, unless token is "", and with the budget of a
// tools/call. The params belong to the caller, which may use them in several requests at the same time, so stamp copies
// whatever it changes. It returns req itself if there is nothing to add, or if the method has no params to add to; then
// no progress renews the limit of the request.
func stamp(ctx context.Context, method string, req mcp.Request, token string) mcp.Request {
	var add [2]field
	n := 0
	if token != "" {
		add[n] = field{progressTokenKey, token}
		n++
	}
	if method == methodCall {
		if budget := request.BudgetOf(ctx, token != "").Shorter(ownBudget(req)); budget != (policy.Budget{}) {
			add[n] = field{policy.BudgetKey, budget.Object()}
			n++
		}
	}
	if n == 0 {
		return req
	}
	return withMeta(method, req, add[:n]...)
}

// ownBudget returns the budget that the params of a request have, or a zero Budget. A caller that forwards a call has
// such params.
func ownBudget(req mcp.Request) (own policy.Budget) {
	if p := req.GetParams(); !missing(p) {
		own, _ = policy.ReadBudget(p.GetMeta())
	}
	return own
}

// A field is a member of the _meta of a request.
type field struct {
	key   string
	value any
}

// withField returns a copy of a _meta, which may be nil, with other fields.
func withField(meta mcp.Meta, add ...field) mcp.Meta {
	out := make(mcp.Meta, len(meta)+len(add))
	maps.Copy(out, meta)
	for _, f := range add {
		out[f.key] = f.value
	}
	return out
}

func withMeta(method string, req mcp.Request, add ...field) mcp.Request {
	var params mcp.Params
	if p := req.GetParams(); missing(p) {
		if params = emptyParams(method); params == nil {
			return req
		}
	} else {
		v := reflect.ValueOf(p)
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		params = c.Interface().(mcp.Params)
	}
	params.SetMeta(withField(params.GetMeta(), add...))

	// The copy has the dynamic type of req, which inner middleware may assert.
	c := reflect.New(reflect.TypeOf(req).Elem())
	c.Elem().Set(reflect.ValueOf(req).Elem())
	c.Elem().FieldByName("Params").Set(reflect.ValueOf(params))
	return c.Interface().(mcp.Request)
}

// emptyParams returns empty params of a method for which the SDK accepts nil, or nil for any other method.
func emptyParams(method string) mcp.Params {
	switch method {
	case "tools/list":
		return new(mcp.ListToolsParams)
	case "prompts/list":
		return new(mcp.ListPromptsParams)
	case "resources/list":
		return new(mcp.ListResourcesParams)
	case "resources/templates/list":
		return new(mcp.ListResourceTemplatesParams)
	case "ping":
		return new(mcp.PingParams)
	}
	return nil
}

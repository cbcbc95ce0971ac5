package mcpsdk

import (
	"maps"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// withProgressToken returns the request with another token. What the middleware sees are
// the caller's own params, which it may use again, at the same time even, so they are
// copied, as far down as they are changed. A request that cannot take a token is given
// back as it is, and so is without a reset.
func withProgressToken(method string, req mcp.Request, token string) mcp.Request {
	return withMeta(method, req, progressTokenKey, token)
}

func withMeta(method string, req mcp.Request, key, value string) mcp.Request {
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
	meta := maps.Clone(params.GetMeta())
	if meta == nil {
		meta = make(map[string]any)
	}
	meta[key] = value
	params.SetMeta(meta)

	// The type of the request is kept for the middlewares further in.
	c := reflect.New(reflect.TypeOf(req).Elem())
	c.Elem().Set(reflect.ValueOf(req).Elem())
	c.Elem().FieldByName("Params").Set(reflect.ValueOf(params))
	return c.Interface().(mcp.Request)
}

// emptyParams returns the params of a method for which the SDK takes nil.
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

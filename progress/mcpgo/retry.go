package mcpgo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// Retry sends a request again if it timed out and its method is one of methods, or matches one of them
// that is a prefix with a star. It is for requests that only read, such as "tools/list" and
// "resources/*". A request of the handshake (see [Connect]) and one that opens a stream are never sent
// again, even if methods names them.
//
// A tools/call is sent again only if methods has "tools/call" itself, not a pattern, and the newest
// list of tools that the client has requested has a ReadOnlyHint or an IdempotentHint for the tool; a
// list from before a change of the tools does not count. All attempts have the same
// [request.IdempotencyKey] in their _meta, that of the caller if there is one. With it, a server can
// answer a repeated call with the result of the first; see [WithIdempotency].
//
// Put Retry around [Limit]; then each try has the limits of the request:
//
//	t = mcpgo.Retry(mcpgo.Limit(t, defaults, perMethod), request.Backoff{}, "tools/list", "resources/*")
//
// Any other error is final. The error is that of the last try or, if the caller gave up between two
// tries, that of the caller's context.
func Retry(t transport.Interface, b request.Backoff, methods ...string) transport.Interface {
	return complete(&retrier{passing: passing{t}, backoff: b, match: request.Repeatable(methods...)}, t, nil)
}

type retrier struct {
	passing
	backoff request.Backoff
	match   func(method string) bool
	hints   adapter.Hints
}

func (r *retrier) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	repeatable := r.match(req.Method)
	if repeatable && req.Method == string(mcp.MethodToolsCall) {
		if repeatable = r.hints.Repeatable(toolOf(req.Params)); repeatable {
			req.Params = withKey(req.Params)
		}
	}
	id, try := req.ID, 0
	send := func() (*transport.JSONRPCResponse, error) {
		if try++; try > 1 {
			// The server has been told to cancel the one before, by its id.
			req.ID = mcp.NewRequestId(fmt.Sprintf("%v-try-%d", id.Value(), try))
		}
		return r.Interface.SendRequest(ctx, req)
	}
	if !repeatable {
		resp, err := send()
		r.hear(req.Method, resp, err)
		return resp, err
	}
	resp, err := request.Retry(ctx, r.backoff, request.TimedOut, send)
	r.hear(req.Method, resp, err)
	return resp, asTimeout(err)
}

// hear takes in what the tools of the server say of themselves.
func (r *retrier) hear(method string, resp *transport.JSONRPCResponse, err error) {
	if method != string(mcp.MethodToolsList) || err != nil || resp == nil || resp.Error != nil {
		return
	}
	var list struct {
		Tools []struct {
			Name        string `json:"name"`
			Annotations struct {
				ReadOnly   bool `json:"readOnlyHint"`
				Idempotent bool `json:"idempotentHint"`
			} `json:"annotations"`
		} `json:"tools"`
	}
	if adapter.Unmarshal(resp.Result, &list) == nil {
		for _, t := range list.Tools {
			r.hints.Tool(t.Name, t.Annotations.ReadOnly, t.Annotations.Idempotent)
		}
	}
}

func (r *retrier) SetNotificationHandler(handler func(mcp.JSONRPCNotification)) {
	if handler == nil {
		r.Interface.SetNotificationHandler(nil)
		return
	}
	r.Interface.SetNotificationHandler(func(n mcp.JSONRPCNotification) {
		if n.Method == mcp.MethodNotificationToolsListChanged {
			r.hints.Forget()
		}
		handler(n)
	})
}

// toolOf returns the name of the tool that is called.
func toolOf(params any) (name string) {
	if p, ok := params.(mcp.CallToolParams); ok {
		return p.Name
	}
	_ = json.Unmarshal(fieldsOf(params)["name"], &name)
	return name
}

// withKey returns a copy of the params of a call with an idempotency key, unless they have one.
func withKey(params any) any {
	if p, ok := params.(mcp.CallToolParams); ok {
		meta := new(mcp.Meta)
		if p.Meta != nil {
			*meta = *p.Meta
			meta.AdditionalFields = maps.Clone(p.Meta.AdditionalFields)
		}
		if _, has := meta.AdditionalFields[request.IdempotencyKey]; !has {
			meta.SetMetaField(request.IdempotencyKey, rand.Text())
		}
		p.Meta = meta
		return p
	}
	fields := fieldsOf(params)
	meta, ok := metaOf(fields)
	if !ok || meta[request.IdempotencyKey] != nil {
		return params
	}
	meta[request.IdempotencyKey], _ = json.Marshal(rand.Text())
	fields[metaKey], _ = json.Marshal(meta)
	return fields
}

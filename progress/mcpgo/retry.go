package mcpgo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A retrier is a transport that sends a request again after a timeout. The limiter is the transport inside, so each try
// has all of the limits. Any error other than a timeout is final. The error is that of the last try or, if the caller
// gave up between two tries, the error of the caller's context.
type retrier struct {
	passing
	backoff request.Backoff
	match   func(method string) bool
	hints   request.Hints
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
			// The previous try has been cancelled at the server by its id, so this try needs another.
			req.ID = mcp.NewRequestId(fmt.Sprintf("%v-try-%d", id.Value(), try))
		}
		return r.Interface.SendRequest(ctx, req)
	}
	backoff := r.backoff
	if !repeatable {
		backoff.Retries = -1
	}
	resp, err := request.Retry(ctx, backoff, request.TimedOut, send)
	said, _ := hear(req.Method, resp, err)
	for _, t := range said.Tools {
		r.hints.Tool(t.Name, t.Annotations.ReadOnly, t.Annotations.Idempotent)
	}
	return resp, asTimeout(err)
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

// toolOf returns the name of the tool in the params of a call, or "" if they have none.
func toolOf(params any) (name string) {
	if p, ok := params.(mcp.CallToolParams); ok {
		return p.Name
	}
	_ = json.Unmarshal(fieldsOf(params)["name"], &name)
	return name
}

// withKey returns a copy of the params of a call with a random idempotency key. A key that the params already have
// stays. Params that are not an object are returned unchanged.
func withKey(params any) any {
	fields := fieldsOf(params)
	meta, ok := metaOf(fields)
	if !ok || meta[request.IdempotencyKey] != nil {
		return params
	}
	meta[request.IdempotencyKey], _ = json.Marshal(rand.Text())
	fields[metaKey], _ = json.Marshal(meta)
	return fields
}

package mcpsdk

import (
	"context"
	"crypto/rand"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// retry adds middleware to c that sends a request again after a transient error. Each try has all limits of the
// request, because the middleware of Limit is inside that of retry. An error from the server is final, and so is the
// loss of the connection. The error is that of the last try or, if the caller gave up between two tries, that of the
// caller's context.
func retry(c *mcp.Client, b request.Backoff, methods []string) {
	match := request.Repeatable(methods...)
	hints := new(perSession[request.Hints])
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			repeatable := match(method)
			if repeatable && method == methodCall {
				p, ok := req.GetParams().(*mcp.CallToolParams)
				known := hints.of(req.GetSession())
				if repeatable = ok && p != nil && known != nil && known.Repeatable(p.Name); repeatable {
					if _, has := p.Meta[request.IdempotencyKey]; !has {
						req = withMeta(method, req, field{request.IdempotencyKey, rand.Text()})
					}
				}
			}
			b := b
			if !repeatable {
				b.Retries = -1
			}
			res, err := request.Retry(ctx, b, transient, func() (mcp.Result, error) { return next(ctx, method, req) })
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
				hear(hints.of(req.GetSession()), list)
			}
			return res, asRPC(err)
		}
	})
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if known := hints.of(req.GetSession()); known != nil && method == "notifications/tools/list_changed" {
				known.Forget()
			}
			return next(ctx, method, req)
		}
	})
}

// hear records from a result of tools/list which tools may be called again.
func hear(known *request.Hints, list *mcp.ListToolsResult) {
	if known == nil || list == nil {
		return
	}
	for _, t := range list.Tools {
		if t != nil {
			a := t.Annotations
			known.Tool(t.Name, a != nil && a.ReadOnlyHint, a != nil && a.IdempotentHint)
		}
	}
}

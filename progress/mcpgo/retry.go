package mcpgo

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// Retry sends requests again that timed out, if their method is one of methods, or matches
// one that is a prefix with a star. It is for requests that only read, such as
// "tools/list" and "resources/*". A tools/call is never sent again, whatever methods says,
// and nor is a request of the handshake, for which see [Connect], or a stream.
//
// It goes around [Limit]; then each try has the limits of the request:
//
//	t = mcpgo.Retry(mcpgo.Limit(t, defaults, perMethod), request.Backoff{}, "tools/list", "resources/*")
//
// Any other error is final. The error is that of the last try, or the caller's if it gave up
// in between.
func Retry(t transport.Interface, b request.Backoff, methods ...string) transport.Interface {
	return complete(&retrier{passing{t}, b, adapter.Repeatable(methods...)}, t, nil)
}

type retrier struct {
	passing
	backoff request.Backoff
	match   func(method string) bool
}

func (r *retrier) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if !r.match(req.Method) {
		return r.Interface.SendRequest(ctx, req)
	}
	id, try := req.ID, 0
	resp, err := request.Retry(ctx, r.backoff, adapter.TimedOut, func() (*transport.JSONRPCResponse, error) {
		if try++; try > 1 {
			// The server has been told to cancel the one before, by its id.
			req.ID = mcp.NewRequestId(fmt.Sprintf("%v-try-%d", id.Value(), try))
		}
		return r.Interface.SendRequest(ctx, req)
	})
	return resp, asTimeout(err)
}

package mcpsdk

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// Retry makes c send requests again that timed out, or that the transport could not
// deliver, if their method is one of methods, or matches one that is a prefix with a
// star. It is for requests that only read, such as "tools/list" and
// "resources/*". A tools/call is never sent again, whatever methods says, and nor is a
// request of the handshake, for which see [Connect], or a stream.
//
// Call it after [Limit]; then each try has the limits of the request. An error that the
// server answered with is final, and so is the loss of the connection. The error is that
// of the last try, or the caller's if it gave up in between.
func Retry(c *mcp.Client, b request.Backoff, methods ...string) {
	match := adapter.Repeatable(methods...)
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if !match(method) {
				return next(ctx, method, req)
			}
			res, err := request.Retry(ctx, b, transient, func() (mcp.Result, error) { return next(ctx, method, req) })
			return res, asRPC(err)
		}
	})
}

// codeRejected is how the SDK marks a request that the transport could not deliver
// without harm to the connection. It does not export it.
const codeRejected = -32005

func transient(err error) bool {
	var wire *jsonrpc.Error
	return adapter.TimedOut(err) || errors.As(err, &wire) && wire.Code == codeRejected
}

package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// admit lets at most n calls run at once; the others wait for their turn, or until they are cancelled.
// It encloses the middleware that adds the limits, so that the wait counts neither as silence nor
// towards the total. A tool that was abandoned gives up its turn, although it may still run. No turn
// comes once the server is shutting down.
func admit(n int64, logger *slog.Logger) mcp.Middleware {
	turns := semaphore.NewWeighted(n)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			joined, leave := toolcall.Join(ctx)
			defer context.AfterFunc(ctx, leave) // when the answer has been sent; see mcpsdk.Serve
			if !turns.TryAcquire(1) {
				logger.Info("tool call waits for its turn", slog.String("tool", call.Params.Name))
				if turns.Acquire(joined, 1) != nil {
					return nil, fmt.Errorf("the call ended before its turn: %w", context.Cause(joined))
				}
			}
			defer turns.Release(1)
			return next(ctx, method, req)
		}
	}
}

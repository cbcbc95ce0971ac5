package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// admit returns a middleware that lets at most n calls run at once. Further calls wait, until they are cancelled or the
// server shuts down. The middleware encloses the one that adds the limits, so that the wait counts neither for the idle
// limit nor for the total. A call whose tool was abandoned no longer counts, although the tool may still run.
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

package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// admit lets at most n calls run at once; the others wait for their turn, or until they are
// cancelled. It goes around the middleware that puts the limits around a tool, so that the
// time before the turn comes counts neither as silence nor towards the total. A tool that was
// abandoned has no turn any more, though it may still run.
func admit(n int64) mcp.Middleware {
	turns := semaphore.NewWeighted(n)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/call" {
				return next(ctx, method, req)
			}
			if err := turns.Acquire(ctx, 1); err != nil {
				return nil, fmt.Errorf("the call ended before its turn: %w", err)
			}
			defer turns.Release(1)
			return next(ctx, method, req)
		}
	}
}

package mcpsdk_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// onlyDeclares has a middleware see everything but the calls.
func onlyDeclares(m mcp.Middleware) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		inside := m(next)
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				return next(ctx, method, req)
			}
			return inside(ctx, method, req)
		}
	}
}

// What one server declares is nothing to another's calls, and goes with its session.
func TestDeclarationsOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil, mcpsdk.UseDeclared(mcpsdk.ClientLimits{}))
		limited := func(cs *mcp.ClientSession) time.Duration {
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "hang"})
			return timedOut(t, err, "tools/call").Limit
		}
		declaring, silent := newTestServer(), newTestServer()
		addHang(declaring, "hang")
		addHang(silent, "hang")
		declaring.AddReceivingMiddleware(onlyDeclares(mcpsdk.Middleware(
			&policy.Policy{Default: &timeout.Config{Total: time.Millisecond, Grace: -1}}, mcpsdk.WithDeclaredLimits())))
		if got := limited(connectClient(t, c, declaring, protocol2025)); got != time.Second+time.Millisecond {
			t.Error(got)
		}
		if got := limited(connectClient(t, c, silent, protocol2025)); got != time.Minute {
			t.Error(got)
		}
	})
}

package mcpgo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A token that takes long to marshal widens the gap, in mcp-go, between the taking and the
// writing of a notification.
var slowToken = strings.Repeat("slow", 1<<15)

// slow has the token "slow" arrive as slowToken.
func slow(s *server.MCPServer) *server.MCPServer {
	s.GetHooks().AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if m := r.Params.Meta; m != nil && m.ProgressToken == "slow" {
			m.ProgressToken = slowToken
		}
	})
	return s
}

// SPEC 7.4: however slow the transport is to write a notification, the result comes after it;
// and one that waits behind it still comes, before its own result.
func TestSlowNotification(t *testing.T) {
	each(t, named("sse 2025", "sse 2026", "http 2026", "serve 2025", "wrapped 2025", "wrapped 2026"), func(t *testing.T, l link) {
		c := l.connect(t, slow(newServer()))
		got := record(c)
		first := make(chan bool)
		// Their notifications can be taken until 100 ms after the tools have returned.
		report := func(token string) {
			if _, err := c.CallTool(soon(t), call{tool: "report", args: map[string]any{"lingerMs": 30}, token: token}.request()); err != nil {
				t.Error(err)
			}
		}
		go func() {
			defer close(first)
			report("slow")
			got.finished(slowToken)
		}()
		report("behind")
		got.finished("behind")
		<-first
		report("after") // what would come late has come before this
		if len(got.of(slowToken)) != 1 || len(got.of("behind")) != 1 {
			t.Errorf("slow: %v, behind: %v", got.of(slowToken), got.of("behind"))
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.late) > 0 {
			t.Errorf("%d after the result", len(got.late))
		}
	})
}

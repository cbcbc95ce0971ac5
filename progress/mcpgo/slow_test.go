package mcpgo_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A token that takes long to marshal widens the gap, in mcp-go, between the taking and the
// writing of a notification.
type slowToken string

const slowness = 100 * ms

func (s slowToken) MarshalJSON() ([]byte, error) {
	time.Sleep(slowness)
	return json.Marshal(string(s))
}

// slow makes the tokens of s slow that begin with "slow".
func slow(s *server.MCPServer) *server.MCPServer {
	s.GetHooks().AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if m := r.Params.Meta; m != nil && m.ProgressToken == "slow" {
			m.ProgressToken = slowToken("slow")
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
		go func() {
			defer close(first)
			// It returns while its notification is being marshalled, a second time over there:
			// the first time was to see whether it is a token at all. The second time must begin
			// within 100 ms of that, and what waits behind must get its turn as soon, so they
			// return no earlier than they have to.
			_, _ = c.CallTool(soon(t), call{tool: "report", args: map[string]any{"lingerMs": float64(slowness/ms) * 1.3}, token: "slow"}.request())
			got.finished("slow")
		}()
		time.Sleep(slowness + slowness/4)
		if _, err := c.CallTool(soon(t), call{tool: "report", args: map[string]any{"lingerMs": 60}, token: "behind"}.request()); err != nil {
			t.Fatal(err)
		}
		got.finished("behind")
		<-first
		time.Sleep(slowness)
		if len(got.of("slow")) != 1 || len(got.of("behind")) != 1 {
			t.Errorf("slow: %v, behind: %v", got.of("slow"), got.of("behind"))
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.late) > 0 {
			t.Errorf("after the result: %v", got.late)
		}
	})
}

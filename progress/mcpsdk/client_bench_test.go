package mcpsdk_test

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// What Limit adds to a call of a tool that does nothing, in memory, where nothing else
// takes time.
func BenchmarkClientCall(b *testing.B) {
	for _, bench := range []struct {
		name  string
		token bool // of the caller: carrying one costs the SDK something, too
		limit func(*mcp.Client)
	}{
		{"without", false, func(*mcp.Client) {}},
		{"without/token", true, func(*mcp.Client) {}},
		{"no limits", false, func(c *mcp.Client) { mcpsdk.Limit(c, unlimited()) }},
		{"limit", false, func(c *mcp.Client) {
			mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Minute}, PerMethod: map[string]request.Limits{}})
		}},
		{"limit and reset", false, func(c *mcp.Client) {
			mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Minute, MaxTotal: time.Hour, ResetOnProgress: true}, PerMethod: map[string]request.Limits{}})
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c, s := newTestClient(nil), newTestServer()
			bench.limit(c)
			addTool(s, "noop", func(context.Context, func(float64, string)) error { return nil })
			cs := connectClient(b, c, s, "2025-11-25")
			b.ReportAllocs()
			for b.Loop() {
				params := &mcp.CallToolParams{Name: "noop"}
				if bench.token {
					params.SetProgressToken("token")
				}
				if _, err := cs.CallTool(b.Context(), params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

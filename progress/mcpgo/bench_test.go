package mcpgo_test

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A call of a tool that does nothing, in one process, so that everything else is small.
func BenchmarkCall(b *testing.B) {
	limits := mcpgo.ClientLimits{Timeout: never, MaxTotal: never, ResetOnProgress: true}
	for _, bm := range []struct {
		name           string
		server, client bool
		token          any
	}{
		{"plain", false, false, nil},
		{"server", true, false, nil},
		{"server, with a token", true, false, "t"},
		{"client", false, true, nil},
		{"both", true, true, nil},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := server.NewMCPServer("bench", "1")
			if bm.server {
				mcpgo.Install(s, &timeout.Policy{Default: timeout.Default()})
			}
			s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			var t transport.Interface = transport.NewInProcessTransport(s)
			if bm.client {
				t = mcpgo.Limit(t, limits, nil)
			}
			c := client.NewClient(t)
			defer c.Close()
			if err := c.Start(context.Background()); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{}); err != nil {
				b.Fatal(err)
			}
			r := call{tool: "noop", token: bm.token}.request()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CallTool(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package mcpgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A call of a tool that does nothing, in one process, so that everything else is small.
func BenchmarkCall(b *testing.B) {
	limits := request.Limits{Timeout: never, MaxTotal: never, ResetOnProgress: true}
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
				mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}})
			}
			s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			var t transport.Interface = transport.NewInProcessTransport(s)
			if bm.client {
				t = mcpgo.Limit(t, &request.Options{Limits: &limits, PerMethod: map[string]request.Limits{}})
			}
			c := client.NewClient(t)
			defer c.Close()
			if err := c.Start(context.Background()); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{}); err != nil {
				b.Fatal(err)
			}
			r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "noop"}}
			if bm.token != nil {
				r.Params.Meta = &mcp.Meta{ProgressToken: bm.token}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CallTool(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package mcpsdk_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// BenchmarkCall is a call of a tool that does nothing, from the SDK's client to its server
// over the in-memory transport: as it is, under Middleware, and with a progress token too.
// The runs differ by some percent from one to the next, so compare medians:
//
//	go test -run - -bench Call -count 10
func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct {
		name    string
		install bool
		token   any
	}{{"plain", false, nil}, {"middleware", true, nil}, {"plain token", false, "t"}, {"middleware token", true, "t"}} {
		b.Run(bb.name, func(b *testing.B) {
			s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
			mcp.AddTool(s, &mcp.Tool{Name: "noop"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
			if bb.install {
				mcpsdk.Install(s, &timeout.Policy{Default: timeout.Default(), Lookup: func(string) (string, bool) { return "", false }})
			}
			cs := inMemory(protocol2025)(b, s, nil)
			p := &mcp.CallToolParams{Name: "noop"}
			if bb.token != nil {
				p.SetProgressToken(bb.token)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cs.CallTool(context.Background(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

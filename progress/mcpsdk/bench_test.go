package mcpsdk_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// benchServer has one tool, which does nothing.
func benchServer(install bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "noop"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	if install {
		mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}})
	}
	return s
}

// caller calls that tool from the SDK's client, over the in-memory transport.
func caller(b *testing.B, install bool, token any) func() {
	cs := connectClient(b, newTestClient(nil), benchServer(install), protocol2025)
	p := &mcp.CallToolParams{Name: "noop"}
	if token != nil {
		p.SetProgressToken(token)
	}
	return func() {
		if _, err := cs.CallTool(context.Background(), p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is a call as it is and under Install, with a progress token and without.
func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct {
		name    string
		install bool
		token   any
	}{{"plain", false, nil}, {"middleware", true, nil}, {"plain token", false, "t"}, {"middleware token", true, "t"}} {
		b.Run(bb.name, func(b *testing.B) {
			call := caller(b, bb.install, bb.token)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkOverhead takes turns between the two, call by call, so that both have the same of
// whatever else the machine does, and compares the medians:
//
//	go test -run - -bench Overhead -count 10
func BenchmarkOverhead(b *testing.B) {
	for name, token := range map[string]any{"no token": nil, "token": "t"} {
		b.Run(name, func(b *testing.B) {
			calls := []func(){caller(b, false, token), caller(b, true, token)}
			took := make([][]time.Duration, 2)
			for b.Loop() {
				for i, call := range calls {
					start := time.Now()
					call()
					took[i] = append(took[i], time.Since(start))
				}
			}
			var median [2]float64
			for i, all := range took {
				slices.Sort(all)
				median[i] = float64(all[len(all)/2])
			}
			b.ReportMetric(median[0], "plain-ns")
			b.ReportMetric(median[1], "middleware-ns")
			b.ReportMetric(median[1]/median[0], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

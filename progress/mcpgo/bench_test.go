package mcpgo_test

import (
	"context"
	"slices"
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

// caller calls a tool that does nothing, in one process, so that everything else is small.
func caller(b *testing.B, supervise func(*server.MCPServer), limited bool, token any) func() {
	s := server.NewMCPServer("bench", "1")
	if supervise != nil {
		supervise(s)
	}
	s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	})
	var t transport.Interface = transport.NewInProcessTransport(s)
	if limited {
		limits := request.Limits{Timeout: never, MaxTotal: never, ResetOnProgress: true}
		t = mcpgo.Limit(t, &request.Options{Limits: &limits, PerMethod: map[string]request.Limits{}})
	}
	c := client.NewClient(t)
	b.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{}); err != nil {
		b.Fatal(err)
	}
	r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "noop"}}
	if token != nil {
		r.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	return func() {
		if _, err := c.CallTool(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func install(s *server.MCPServer) {
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}})
}

// byHand is the least that keeps a tool that ignores its context from holding up its answer: a deadline, and a goroutine.
func byHand(s *server.MCPServer) {
	s.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
			defer cancel()
			type answer struct {
				res *mcp.CallToolResult
				err error
			}
			done := make(chan answer, 1)
			go func() {
				res, err := next(ctx, r)
				done <- answer{res, err}
			}()
			select {
			case a := <-done:
				return a.res, a.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
}

// BenchmarkCall is a call as it is, under Install, under Limit, and under both.
func BenchmarkCall(b *testing.B) {
	for _, bm := range []struct {
		name   string
		server func(*server.MCPServer)
		client bool
		token  any
	}{
		{"plain", nil, false, nil},
		{"plain, with a token", nil, false, "t"},
		{"server", install, false, nil},
		{"server, with a token", install, false, "t"},
		{"client", nil, true, nil},
		{"both", install, true, nil},
	} {
		b.Run(bm.name, func(b *testing.B) {
			call := caller(b, bm.server, bm.client, bm.token)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkOverhead takes turns between a call as it is and one under Install, under a deadline by hand, or under Limit,
// so that both have the same of whatever else the machine does, and compares the medians:
//
//	go test -run - -bench Overhead -count 10
func BenchmarkOverhead(b *testing.B) {
	for _, bm := range []struct {
		name   string
		server func(*server.MCPServer)
		client bool
		token  any
	}{
		{"by hand", byHand, false, nil},
		{"server", install, false, nil},
		{"server, with a token", install, false, "t"},
		{"client", nil, true, nil},
	} {
		b.Run(bm.name, func(b *testing.B) {
			calls := []func(){caller(b, nil, false, bm.token), caller(b, bm.server, bm.client, bm.token)}
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
			b.ReportMetric(median[1], "tooldeadline-ns")
			b.ReportMetric(median[1]/median[0], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

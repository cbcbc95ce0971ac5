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

// caller calls a tool that does nothing from the SDK's client, over the in-memory transport.
func caller(b *testing.B, supervise func(*mcp.Server), token any) func() {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "noop"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	if supervise != nil {
		supervise(s)
	}
	cs := connectClient(b, newTestClient(nil), s, protocol2025)
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

func install(s *mcp.Server) {
	mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}})
}

// byHand is the least that keeps a tool that ignores its context from holding up its answer: a deadline, and a goroutine.
func byHand(s *mcp.Server) {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/call" {
				return next(ctx, method, req)
			}
			ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
			defer cancel()
			type answer struct {
				res mcp.Result
				err error
			}
			done := make(chan answer, 1)
			go func() {
				res, err := next(ctx, method, req)
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

// BenchmarkCall is a call as it is and under Install, with a progress token and without.
func BenchmarkCall(b *testing.B) {
	for _, bm := range []struct {
		name   string
		server func(*mcp.Server)
		token  any
	}{{"plain", nil, nil}, {"plain, with a token", nil, "t"}, {"server", install, nil}, {"server, with a token", install, "t"}} {
		b.Run(bm.name, func(b *testing.B) {
			call := caller(b, bm.server, bm.token)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkOverhead takes turns between a call as it is, one under a deadline by hand, and one under Install, so that
// all have the same of whatever else the machine does, and compares the medians:
//
//	go test -run - -bench Overhead -count 10
func BenchmarkOverhead(b *testing.B) {
	for name, token := range map[string]any{"no token": nil, "token": "t"} {
		b.Run(name, func(b *testing.B) {
			calls := []func(){caller(b, nil, token), caller(b, byHand, token), caller(b, install, token)}
			took := make([][]time.Duration, len(calls))
			for b.Loop() {
				for i, call := range calls {
					start := time.Now()
					call()
					took[i] = append(took[i], time.Since(start))
				}
			}
			var median [3]float64
			for i, all := range took {
				slices.Sort(all)
				median[i] = float64(all[len(all)/2])
			}
			b.ReportMetric(median[0], "plain-ns")
			b.ReportMetric(median[1]/median[0], "by-hand-ratio")
			b.ReportMetric(median[2]/median[0], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

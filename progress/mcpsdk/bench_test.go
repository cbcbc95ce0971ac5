package mcpsdk_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
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

// BenchmarkWrapHTTPBody is what a body of 4 MiB costs above its reading: a batch of tokens, and
// one long string.
func BenchmarkWrapHTTPBody(b *testing.B) {
	const one = `{"params":{"_meta":{"progressToken":9007199254740993}}},`
	for name, body := range map[string]string{
		"tokens": "[" + strings.Repeat(one, mcp.DefaultMaxRequestBodyBytes/len(one)-1) + "1]",
		"string": `{"params":{"arguments":"` + strings.Repeat("x", mcp.DefaultMaxRequestBodyBytes-100) + `"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			h := mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				h.ServeHTTP(nil, httptest.NewRequest("POST", "/", strings.NewReader(body)))
			}
		})
	}
}

// BenchmarkTasks is what a fast call costs more where its tool has a soft limit and the client takes
// tasks: the two take turns, as in BenchmarkOverhead.
//
//	go test -run - -bench Tasks -count 10
func BenchmarkTasks(b *testing.B) {
	server := func(tasks *task.Tasks) *mcp.Server {
		s := benchServer(false)
		p := &policy.Policy{Default: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}, Tools: map[string]policy.Tool{"noop": {Soft: time.Minute}}}
		mcpsdk.Install(s, &mcpsdk.Options{Policy: p, Tasks: tasks})
		return s
	}
	for _, bb := range []struct {
		name          string
		http, declare bool
	}{{"declared", false, true}, {"not declared", false, false}, {"declared, HTTP", true, true}} {
		b.Run(bb.name, func(b *testing.B) {
			tasks := new(task.Tasks)
			b.Cleanup(func() { _ = tasks.Close() })
			capabilities := new(mcp.ClientCapabilities)
			if bb.declare {
				capabilities.AddExtension(task.ExtensionID, nil)
			}
			var calls []func()
			for _, s := range []*mcp.Server{server(nil), server(tasks)} {
				c := newTestClient(&mcp.ClientOptions{Capabilities: capabilities})
				var cs *mcp.ClientSession
				if bb.http {
					server := httptest.NewServer(mcpsdk.WrapHTTP(streamable(b, s, &mcp.StreamableHTTPOptions{Stateless: true})))
					b.Cleanup(server.Close)
					cs = connectTo(b, c, &mcp.StreamableClientTransport{Endpoint: server.URL, MaxRetries: -1}, protocol2026)
				} else {
					cs = connectClient(b, c, s, protocol2026)
				}
				calls = append(calls, func() {
					if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "noop"}); err != nil {
						b.Fatal(err)
					}
				})
			}
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
			b.ReportMetric(median[0], "without-ns")
			b.ReportMetric(median[1], "tasks-ns")
			b.ReportMetric(median[1]/median[0], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

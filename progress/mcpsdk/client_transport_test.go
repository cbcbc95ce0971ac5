package mcpsdk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// The test binary is a server over stdio where this is set.
const stdioServer = "TOOLDEADLINE_CLIENT_TEST_SERVER"

func init() {
	switch os.Getenv(stdioServer) {
	case "work":
		_ = transportServer(time.Minute).Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	case "reason":
		_ = reasonServer().Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	case "deaf": // does not read, and ends only when it is made to
		time.Sleep(time.Minute)
		os.Exit(1)
	}
}

func stdioCommand(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stdioServer+"="+mode)
	return cmd
}

// transportServer has a tool that works for 7 s and reports progress every 100 ms, one
// that hangs, if not for ever, and one that says how often the latter was cancelled.
func transportServer(hang time.Duration) *mcp.Server {
	s := newTestServer()
	var cancelled atomic.Int64
	addTool(s, "work", func(ctx context.Context, report func(float64, string)) error {
		for i := range 70 {
			select {
			case <-time.After(100 * ms):
			case <-ctx.Done():
				return ctx.Err()
			}
			report(float64(i+1), "")
		}
		return nil
	})
	addTool(s, "hang", func(ctx context.Context, _ func(float64, string)) error {
		select {
		case <-ctx.Done():
			cancelled.Add(1)
		case <-time.After(hang): // or a server that is not told of it could not be closed
		}
		return ctx.Err()
	})
	s.AddTool(&mcp.Tool{Name: "cancelled", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strconv.FormatInt(cancelled.Load(), 10)}}}, nil
		})
	return s
}

func serveHTTP(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// SPEC 8.1, 8.2 over every transport: progress renews the limit of a call, a call that
// times out is cancelled at the server, and the session goes on.
func TestClientTransports(t *testing.T) {
	t.Parallel()
	streamable := func(o *mcp.StreamableHTTPOptions, hang time.Duration) func(*testing.T) mcp.Transport {
		return func(t *testing.T) mcp.Transport {
			s := transportServer(hang)
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
			return &mcp.StreamableClientTransport{Endpoint: serveHTTP(t, h)}
		}
	}
	for _, test := range []struct {
		name      string
		transport func(*testing.T) mcp.Transport
		protocols []string
		silent    bool // the transport carries no progress
		deaf      bool // the server is not told of a cancellation: a limit of the SDK
	}{
		{name: "stdio", protocols: protocols, transport: func(*testing.T) mcp.Transport {
			return &mcp.CommandTransport{Command: stdioCommand("work")}
		}},
		{name: "sse", protocols: protocols[:1], transport: func(t *testing.T) mcp.Transport {
			s := transportServer(time.Minute)
			return &mcp.SSEClientTransport{Endpoint: serveHTTP(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))}
		}},
		{name: "streamable", protocols: protocols[:1], transport: streamable(nil, time.Minute)},
		{name: "streamable with JSON", protocols: protocols[:1], transport: streamable(&mcp.StreamableHTTPOptions{JSONResponse: true}, time.Minute)},
		{name: "stateless", protocols: protocols[1:], transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, time.Minute)},
		{name: "stateless with JSON", protocols: protocols[1:], silent: true,
			transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true}, time.Minute)},
		{name: "stateless", protocols: protocols[:1], deaf: true, transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true}, 8000*ms)},
	} {
		for _, version := range test.protocols {
			t.Run(test.name+"/"+version, func(t *testing.T) {
				t.Parallel()
				c := newTestClient(nil)
				mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil)
				cs, err := c.Connect(t.Context(), test.transport(t), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				if got := cs.InitializeResult().ProtocolVersion; got != version {
					t.Fatalf("protocol %s, want %s", got, version)
				}

				ctx := mcpsdk.WithLimits(t.Context(), mcpsdk.ClientLimits{Timeout: 5 * time.Second, ResetOnProgress: true})
				_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"})
				if test.silent {
					timedOut(t, err, "tools/call")
				} else if err != nil {
					t.Errorf("with progress: %v", err)
				}
				// Over HTTP each message is a request of its own, so a cancellation can overtake its call,
				// and is of no use then: the call has to be there when the limit fires.
				for _, l := range []mcpsdk.ClientLimits{{Timeout: 5 * time.Second}, {MaxTotal: 5 * time.Second}} {
					start := time.Now()
					_, err = cs.CallTool(mcpsdk.WithLimits(t.Context(), l), &mcp.CallToolParams{Name: "hang"})
					timedOut(t, err, "tools/call")
					if elapsed := time.Since(start); elapsed > 20*time.Second {
						t.Errorf("a limit of 5 s took %v", elapsed)
					}
				}
				for deadline := time.Now().Add(slack); ; time.Sleep(10 * ms) {
					res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancelled"})
					if err != nil {
						t.Fatalf("after the timeouts: %v", err)
					}
					n := res.Content[0].(*mcp.TextContent).Text
					if n == "2" || test.deaf {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s of 2 calls were cancelled at the server", n)
					}
				}
			})
		}
	}
}

package mcpsdk_test

import (
	"context"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// overNet is a client of a server in memory. Its end is that of the test.
func overNet(t *testing.T, h http.Handler) *http.Client {
	n := sdktest.NewNet(h)
	c := n.Client()
	t.Cleanup(func() {
		n.End()
		c.CloseIdleConnections()
		time.Sleep(time.Hour) // for tools that were not told of their end
	})
	return c
}

// SPEC 8.1, 8.2 over every transport: progress renews the limit of a call, a call that times out is cancelled at the
// server, with the reason, and the session goes on.
func TestClientTransports(t *testing.T) {
	streamable := func(o *mcp.StreamableHTTPOptions) func(*testing.T, *mcp.Server) mcp.Transport {
		return func(t *testing.T, s *mcp.Server) mcp.Transport {
			c := overNet(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o))
			return &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: c}
		}
	}
	for _, tc := range []struct {
		name, version string
		transport     func(*testing.T, *mcp.Server) mcp.Transport
		silent        bool // the transport carries no progress
		deaf          bool // the server is not told of a cancellation: a limit of the SDK
	}{
		{name: "sse", version: protocol2025, transport: func(t *testing.T, s *mcp.Server) mcp.Transport {
			c := overNet(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
			return &mcp.SSEClientTransport{Endpoint: "http://localhost/", HTTPClient: c}
		}},
		{name: "streamable", version: protocol2025, transport: streamable(nil)},
		{name: "streamable with JSON", version: protocol2025, transport: streamable(&mcp.StreamableHTTPOptions{JSONResponse: true})},
		{name: "stateless", version: protocol2026, transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})},
		{name: "stateless with JSON", version: protocol2026, silent: true,
			transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true})},
		{name: "stateless", version: protocol2025, deaf: true, transport: streamable(&mcp.StreamableHTTPOptions{Stateless: true})},
	} {
		t.Run(tc.name+"/"+tc.version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := transportServer(time.Minute)
				c := newTestClient(nil)
				mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil)
				cs, err := c.Connect(t.Context(), tc.transport(t, s), &mcp.ClientSessionOptions{ProtocolVersion: tc.version})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					time.Sleep(time.Minute)
					_ = cs.Close()
					for ss := range s.Sessions() {
						_ = ss.Close()
					}
				}()
				ctx := mcpsdk.WithLimits(t.Context(), mcpsdk.ClientLimits{Timeout: 5 * time.Second, ResetOnProgress: true})
				if _, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"}); tc.silent {
					timedOut(t, err, "tools/call")
				} else if err != nil {
					t.Errorf("with progress: %v", err)
				}
				for _, l := range []mcpsdk.ClientLimits{{Timeout: 5 * time.Second}, {MaxTotal: 5 * time.Second}} {
					_, err = cs.CallTool(mcpsdk.WithLimits(t.Context(), l), &mcp.CallToolParams{Name: "hang"})
					if e := timedOut(t, err, "tools/call"); e.Elapsed != 5*time.Second {
						t.Errorf("%+v", e)
					}
				}
				time.Sleep(time.Second)
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancelled"})
				if err != nil {
					t.Fatalf("after the timeouts: %v", err)
				}
				if n := texts(res)[0]; n != "2" && !tc.deaf {
					t.Errorf("%s of 2 calls were cancelled at the server", n)
				}
			})
		})
	}
}

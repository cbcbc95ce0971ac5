package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

var errStop = errors.New("the user pressed Stop")

// SPEC 8.6: a request that is given up says why, and for how long it was waited, and a caller that gives up
// without a limit gets the error that it would get without Limit.
func TestCancelReason(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits mcpsdk.ClientLimits
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		want   string
		err    error // exactly, where it is not nil
	}{
		{name: "progress", limits: mcpsdk.ClientLimits{Timeout: time.Minute, ResetOnProgress: true}, want: "timeout of 60 s without progress"},
		{name: "answer", limits: mcpsdk.ClientLimits{Timeout: 1500 * ms}, want: "timeout of 1.5 s without an answer"},
		{name: "total", limits: mcpsdk.ClientLimits{Timeout: time.Hour, MaxTotal: 30 * time.Minute}, want: "timeout of 30 min in total"},
		{name: "deadline of the caller", limits: mcpsdk.ClientLimits{Timeout: time.Hour}, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 250*ms)
		}, want: "timeout of 250 ms in total"},
		{name: "person", limits: mcpsdk.ClientLimits{Timeout: time.Hour}, ctx: stopAfter(errStop), want: "cancelled: the user pressed Stop"},
		{name: "caller", limits: mcpsdk.ClientLimits{Timeout: time.Hour}, ctx: stopAfter(nil), want: "cancelled by the client"},
		{name: "no limits", ctx: stopAfter(nil), want: "cancelled by the client", err: context.Canceled},
		{name: "no limits and a deadline", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 250*ms)
		}, want: "context deadline exceeded", err: context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reasons := make(chan string, 1)
				_, transport := serveRaw(t, func(w *rawServer, req *jsonrpc.Request) {
					switch req.Method {
					case "initialize":
						w.initialize(req)
					case "notifications/cancelled":
						var p struct{ Reason string }
						_ = json.Unmarshal(req.Params, &p)
						reasons <- p.Reason
					}
				})
				c := newTestClient(nil)
				mcpsdk.Limit(c, tc.limits, nil)
				cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tc.ctx != nil {
					ctx, cancel = tc.ctx(ctx)
				}
				defer cancel()
				_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"})
				if err == nil || tc.err != nil && err != tc.err {
					t.Errorf("%v, want %v", err, tc.err)
				}
				if got := <-reasons; got != tc.want {
					t.Errorf("%q, want %q", got, tc.want)
				}
			})
		})
	}
}

func stopAfter(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(cause) })
		return ctx, func() { cancel(nil) }
	}
}

// SPEC 8.6 with real servers: what the server of the SDK hears, over stdio and over HTTP.
func TestCancelReasonOverTransports(t *testing.T) {
	for _, tc := range []struct {
		name string
		open func(*testing.T) mcp.Transport
	}{
		{"stdio", func(*testing.T) mcp.Transport { return &mcp.CommandTransport{Command: stdioCommand("reason")} }},
		{"streamable", func(t *testing.T) mcp.Transport {
			s := reasonServer()
			return &mcp.StreamableClientTransport{Endpoint: serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))}
		}},
		{"SSE", func(t *testing.T) mcp.Transport {
			s := reasonServer()
			return &mcp.SSEClientTransport{Endpoint: serveHTTP(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newTestClient(nil)
			mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil)
			cs, err := c.Connect(t.Context(), tc.open(t), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			ctx := mcpsdk.WithLimits(t.Context(), mcpsdk.ClientLimits{Timeout: 2 * time.Second, ResetOnProgress: true})
			_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
			timedOut(t, err, "tools/call")
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "reason"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("timeout of 2 s without progress", res.Content[0].(*mcp.TextContent).Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// reasonServer has a tool that hangs, and one that waits for the reason of a cancellation.
func reasonServer() *mcp.Server {
	s := newTestServer()
	reasons := make(chan string, 10)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if p, ok := req.GetParams().(*mcp.CancelledParams); ok {
				reasons <- p.Reason
			}
			return next(ctx, method, req)
		}
	})
	addHang(s, "hang")
	s.AddTool(&mcp.Tool{Name: "reason", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: <-reasons}}}, nil
	})
	return s
}

package mcpgo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/stream"
)

// SPEC 9.4: a client with an idle limit takes a server's quiet notification stream for dead, unless
// KeepAlive is around the handler.
func TestKeepAlive(t *testing.T) {
	for name, every := range map[string]time.Duration{"kept alive": 50 * time.Millisecond, "quiet": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := httptest.NewServer(stream.KeepAlive(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(server.NewMCPServer("test", "1"))), every))
			t.Cleanup(ts.Close)
			t.Cleanup(ts.CloseClientConnections)
			lost := make(chan struct{}, 100)
			hc := &http.Client{Transport: &stream.Notifications{
				Base: new(http.Transport), Idle: 5 * time.Second,
				Hooks: stream.Hooks{Lost: func(context.Context, stream.Outage) { lost <- struct{}{} }},
			}}
			t.Cleanup(hc.CloseIdleConnections)
			//lint:ignore SA1019 the stream of all protocols before 2026-07-28
			c, err := client.NewStreamableHttpClient(ts.URL, transport.WithContinuousListening(), transport.WithHTTPBasicClient(hc))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			init := mcp.InitializeRequest{}
			init.Params.ProtocolVersion = "2025-11-25"
			if _, err := c.Initialize(t.Context(), init); err != nil {
				t.Fatal(err)
			}
			select {
			case <-lost:
				if every > 0 {
					t.Error("the stream was taken for dead")
				}
			case <-time.After(13 * time.Second):
				if every < 0 {
					t.Error("the stream was not taken for dead")
				}
			}
			//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
			if err := c.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

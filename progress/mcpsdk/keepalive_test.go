package mcpsdk_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/stream"
)

// SPEC 9.4: a client with an idle limit takes a server's quiet notification stream for dead, unless
// KeepAlive is around the handler.
func TestKeepAlive(t *testing.T) {
	for name, every := range map[string]time.Duration{"kept alive": 50 * time.Millisecond, "quiet": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			lost := make(chan struct{}, 100)
			h := mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
			cs := throughHTTP(t, s, stream.KeepAlive(h, every), func(url string, c *http.Client) mcp.Transport {
				c.Transport = &stream.Notifications{
					Base: c.Transport, Idle: 5 * time.Second,
					Hooks: stream.Hooks{Lost: func(context.Context, stream.Outage) { lost <- struct{}{} }},
				}
				return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c}
			}, nil, protocol2025)
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
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "noop"}); err != nil {
				t.Error(err)
			}
		})
	}
}

package mcpgo_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/stream"
)

// The old transport's stream is the session: when it goes silent, both are over.
func TestSSEStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDKServer(sdktest.Config{})
		n := sdktest.NewNet(s.SSE())
		hc := n.Client()
		base := hc.Transport.(*http.Transport)
		hc.Transport = &stream.Notifications{Base: base, Idle: time.Minute}
		c, err := client.NewSSEMCPClient("http://localhost/sse", transport.WithSSELogger(slog.New(slog.DiscardHandler)), transport.WithHTTPClient(hc))
		if err != nil {
			t.Fatal(err)
		}
		lost := make(chan error, 1)
		c.OnConnectionLost(func(err error) { lost <- err })
		begun := time.Now()
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Initialize(t.Context(), hello); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; err == nil || time.Since(begun) != time.Minute {
			t.Errorf("lost with %v after %v", err, time.Since(begun))
		}
		_ = c.Close()
		s.Close()
		n.End()
		base.CloseIdleConnections()
		time.Sleep(time.Hour)
	})
}

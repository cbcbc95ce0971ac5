package mcpsdk_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A request that the transport could not deliver is sent again.
func TestRetryTransport(t *testing.T) {
	s := transportServer(time.Minute)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	var unavailable atomic.Int64
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if unavailable.Add(-1) >= 0 {
			http.Error(w, "try later", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
	c := newTestClient(nil)
	mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil)
	mcpsdk.Retry(c, request.Backoff{First: ms}, "tools/*")
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	unavailable.Store(2)
	if res, err := cs.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 3 {
		t.Errorf("%v, %v", res, err)
	}
	unavailable.Store(1)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancelled"}); err == nil {
		t.Error("a tool call was sent again")
	}
}

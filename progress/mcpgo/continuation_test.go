package mcpgo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// Over Streamable HTTP a stream of notifications may end without its session.
func TestContinuationOutlivesAStream(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithContinuation(30*ms))
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer)))
	defer ts.Close()
	gone := make(chan bool)
	s.GetHooks().AddOnUnregisterSession(func(context.Context, server.ClientSession) { close(gone) })
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, ts.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8") // that of post
	stream, err := ts.Client().Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	_ = post(t, http.DefaultClient, ts.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain"}}`).Body.Close()
	tool := within(t, s.started, "the start")
	hangUp()
	<-gone
	if tool.Err() != nil {
		t.Errorf("with the stream: %v", context.Cause(tool))
	}
	s.release <- true
}

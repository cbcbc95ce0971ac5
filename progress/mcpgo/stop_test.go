package mcpgo_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// watched is a server that says when a tool begins and how it ends.
func watched() (s *server.MCPServer, started chan string, ended chan error) {
	started, ended = make(chan string, 10), make(chan error, 10)
	return newServer(mcpgo.WithOptions(timeout.WithHooks(timeout.Hooks{
		Started:  func(_ context.Context, s timeout.Snapshot) { started <- s.Tool },
		Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s.Err },
	}))), started, ended
}

func within[T any](t *testing.T, c chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(slack):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// aborted checks the error of a tool against the words of [toolcall.CauseOf] that its abort may have.
func aborted(t *testing.T, err error, causes ...string) {
	t.Helper()
	if got := toolcall.CauseOf(err); !errors.Is(err, timeout.ErrAborted) || !slices.Contains(causes, got) {
		t.Errorf("the cause is %q of %v, want one of %q", got, err, causes)
	}
}

// SPEC 3.11, 3.23: a client that cancels stops the tool, and so does one that goes. mcp-go's own client
// cancels over HTTP by hanging up, so a cancellation and a lost connection are one to the server: it
// knows that the connection has ended, and claims no more. Without Serve or WrapHTTP, mcp-go says nothing.
func TestAbort(t *testing.T) {
	for _, l := range links {
		for _, how := range []string{"cancel", "disconnect"} {
			if how == "cancel" && strings.HasPrefix(l.name, "sse") {
				continue // mcp-go's client does not tell the server over SSE; ours does, see TestTimeoutCancelsAtTheServer
			}
			t.Run(l.name+" "+how, func(t *testing.T) {
				s, started, ended := watched()
				c := l.connect(t, s)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() { _, _ = c.CallTool(ctx, call{tool: "wait"}.request()) }()
				within(t, started, "the start")
				if how == "cancel" {
					cancel()
				} else {
					_ = c.Close()
				}
				causes := []string{""}
				switch kind, _, _ := strings.Cut(l.name, " "); {
				case kind == "sse":
					causes = []string{"disconnected"}
				case kind == "serve" && how == "cancel":
					causes = []string{"client"}
				case how == "disconnect" && (l.name == "wrapped 2025" || l.name == "wrapped 2025 event store"):
					causes = []string{"session_ended", "disconnected"} // Close sends a DELETE beside that
				case kind == "serve", kind == "wrapped":
					causes = []string{"disconnected"}
				}
				aborted(t, within(t, ended, "the end of the tool"), causes...)
			})
		}
	}
}

// A standalone stream that ends takes no call of its session along.
func TestStreamBesideCalls(t *testing.T) {
	t.Parallel()
	s, started, ended := watched()
	ts := httptest.NewServer(server.NewStreamableHTTPServer(s))
	defer ts.Close()
	do := func(ctx context.Context, method, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, ts.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8")
		resp, err := ts.Client().Do(req)
		if err != nil {
			t.Error(err)
			return &http.Response{Body: http.NoBody}
		}
		return resp
	}
	ctx, hangUp := context.WithCancel(soon(t))
	stream := do(ctx, http.MethodGet, "")
	answered := make(chan bool)
	go func() {
		defer close(answered)
		_ = do(soon(t), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"timeoutMs":500}}}`).Body.Close()
	}()
	within(t, started, "the start")
	hangUp()
	_ = stream.Body.Close()
	if err := within(t, ended, "the end of the tool"); !errors.Is(err, timeout.ErrTotal) {
		t.Errorf("%v", err)
	}
	<-answered
}

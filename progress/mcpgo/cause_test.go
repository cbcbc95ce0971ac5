package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A silentServer has one tool, "silent", which waits for its end.
func silentServer() (s *server.MCPServer, started chan struct{}, ended chan error) {
	started, ended = make(chan struct{}, 1), make(chan error, 1)
	s = server.NewMCPServer("silent", "1")
	mcpgo.Install(s, nil, mcpgo.WithOptions(timeout.Config{}, timeout.WithHooks(timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s.Err },
	})))
	s.AddTool(mcp.NewTool("silent"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return s, started, ended
}

func causeIs(t *testing.T, ended <-chan error, want string) {
	t.Helper()
	select {
	case err := <-ended:
		if got := toolcall.CauseOf(err); got != want {
			t.Errorf("the cause is %q of %v, want %q", got, err, want)
		}
	case <-time.After(slack):
		t.Fatal("the tool runs on")
	}
}

// SPEC 3.11: a call that is cancelled while it waits for a worker is answered, and its tool does not run.
func TestCancelledBeforeAWorker(t *testing.T) {
	s, started, ended := silentServer()
	r := newRaw(t, s, server.WithWorkerPoolSize(1))
	const call = `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"silent"}}`
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"Request timed out"}}`
	write := func(line, id string) { r.write(fmt.Sprintf(line, id)) }
	write(call, "1")
	within(t, started, "the start")
	early := map[string]any{"2": 2.0, "12345678": 12345678.0, "9007199254740993": float64(1 << 53), `"x"`: "x"}
	for text := range early {
		write(call, text)
		write(cancel, text)
	}
	r.write(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	r.answer("ping") // what is before it has arrived
	write(cancel, "1")
	causeIs(t, ended, "client_timeout")
	answers := map[any]message{}
	for range 1 + len(early) {
		m := r.read()
		answers[m.ID] = m
	}
	for _, id := range early {
		if m := answers[id]; !strings.Contains(string(m.Result), "client_timeout") {
			t.Errorf("%v: %s %s", id, m.Result, m.Error)
		}
	}
	write(call, "2") // another call of that id is another call
	within(t, started, "the start of the last call")
	write(cancel, "2")
	causeIs(t, ended, "client_timeout")
}

// A cancellation is accepted as the official SDK's client sends it with 2026-07-28: it would close its connection
// after the refusal that mcp-go has for a notification without _meta.
func TestCancellationIsAccepted(t *testing.T) {
	web := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer())))
	defer web.Close()
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"context deadline exceeded"}}`: http.StatusAccepted,
		`{"jsonrpc":"2.0","method":"notifications/other","params":{}}`:                                                       http.StatusBadRequest,
	} {
		req, _ := http.NewRequestWithContext(soon(t), http.MethodPost, web.URL, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		var m struct{ Method string }
		_ = json.Unmarshal([]byte(body), &m)
		req.Header.Set("Mcp-Method", m.Method)
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want || (len(said) == 0) != (want == http.StatusAccepted) {
			t.Errorf("%s: %s, %q, %v", m.Method, resp.Status, said, err)
		}
	}
}

package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// followers are the ways for a client of the SDK to reach a server with tasks.
var followers = map[string]func(t testing.TB, s *taskServer) mcp.Transport{
	"in-memory": func(t testing.TB, s *taskServer) mcp.Transport {
		server, client := mcp.NewInMemoryTransports()
		ss, err := s.server().Connect(context.Background(), server, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ss.Wait() })
		return client
	},
	"HTTP":                       followHTTP(mcp.StreamableHTTPOptions{Stateless: true}, false),
	"HTTP, propagated, JSON":     followHTTP(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, JSONResponse: true}, false),
	"HTTP, a server per request": followHTTP(mcp.StreamableHTTPOptions{Stateless: true}, true),
}

func followHTTP(o mcp.StreamableHTTPOptions, perRequest bool) func(t testing.TB, s *taskServer) mcp.Transport {
	return func(t testing.TB, s *taskServer) mcp.Transport {
		var h http.Handler
		if perRequest {
			h = streamable(s.server, o)
		} else {
			h = shared(t, s, o)
		}
		server := httptest.NewServer(h)
		client := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(func() {
			server.CloseClientConnections()
			client.CloseIdleConnections()
			server.Close()
		})
		return &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxRetries: -1}
	}
}

// following connects a client that follows tasks.
func following(t testing.TB, transport mcp.Transport, opts *mcp.ClientOptions, prepare ...func(*mcp.Client)) *mcp.ClientSession {
	t.Helper()
	c := newTestClient(opts)
	for _, f := range prepare {
		f(c)
	}
	mcpsdk.FollowTasks(c)
	cs, err := c.Connect(context.Background(), mcpsdk.WrapClientTransport(transport), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != protocol2026 {
		t.Fatal(got)
	}
	return cs
}

// SPEC 11.2: a JSON-RPC error of a tool is that of the call, with its code, as a task, too.
func TestProtocolErrorOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTaskServer(t)
		cs := following(t, followers["in-memory"](t, s), nil)
		time.AfterFunc(time.Second, func() { s.gate <- struct{}{} })
		for tool, want := range map[string]jsonrpc.Error{"refuses": {Code: -32042, Message: "not like this"}, "breaks": {Code: jsonrpc.CodeInternalError, Message: "broken"}} {
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != want.Code || wire.Message != want.Message {
				t.Errorf("%s: %v", tool, err)
			}
		}
		_ = cs.Close()
		_ = s.tasks.Close()
		time.Sleep(time.Hour)
	})
}

// A task that somebody else cancels is an error that says so.
func TestFollowTasksCancelledElsewhere(t *testing.T) {
	s := newTaskServer(t)
	h := shared(t, s, mcp.StreamableHTTPOptions{Stateless: true})
	ids := make(chan any, 1)
	h = spying(h, ids)
	server := httptest.NewServer(h)
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	cs := following(t, &mcp.StreamableClientTransport{Endpoint: server.URL, MaxRetries: -1}, nil)
	p := overWeb(t, h, protocol2026, false)
	go func() { p.request("tasks/cancel", object{"taskId": <-ids}) }()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"}); !errors.Is(err, task.ErrCancelled) {
		t.Error(err)
	}
}

// spying tells of the first task that is asked for.
func spying(h http.Handler, ids chan<- any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tasks/get" {
			select {
			case ids <- r.Header.Get("Mcp-Name"):
			default:
			}
		}
		h.ServeHTTP(w, r)
	})
}

// Without the wrapper, and with a server of 2025-11-25 that does not see a request for a task, nothing
// is asked for, and calls are plain.
func TestFollowTasksNotWrapped(t *testing.T) {
	s := newTaskServer(t)
	c := newTestClient(nil)
	mcpsdk.FollowTasks(c)
	cs, err := c.Connect(t.Context(), followers["in-memory"](t, s), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	go func() { time.Sleep(100 * ms); s.gate <- struct{}{} }()
	if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
		t.Error(got)
	}

	c = newTestClient(nil)
	mcpsdk.FollowTasks(c)
	old, err := c.Connect(t.Context(), mcpsdk.WrapClientTransport(followers["in-memory"](t, s)), &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	go func() { time.Sleep(100 * ms); s.gate <- struct{}{} }()
	if got := texts(call(t, old, "gated", nil)); got[0] != "through" {
		t.Error(got)
	}
}

// What the caller passes is not changed, but by the SDK.
func TestFollowTasksParams(t *testing.T) {
	s := newTaskServer(t)
	cs := following(t, followers["in-memory"](t, s), nil)
	p := &mcp.CallToolParams{Name: "gated", Arguments: map[string]any{"a": 1}, Meta: mcp.Meta{"own": "kept"}}
	go func() { time.Sleep(100 * ms); s.gate <- struct{}{} }()
	if _, err := cs.CallTool(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]any{"a": 1}, p.Arguments); d != "" || p.InputResponses != nil || p.Meta["own"] != "kept" || p.Name != "gated" {
		t.Errorf("%+v", p)
	}
	if c, ok := p.Meta[mcp.MetaKeyClientCapabilities].(*mcp.ClientCapabilities); ok && len(c.Extensions) > 0 {
		t.Errorf("%+v", c)
	}
}

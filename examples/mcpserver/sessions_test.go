package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// Clients that open sessions and leave take the place of each other, and of no client that goes
// on.
func TestSessionsAreBounded(t *testing.T) {
	for _, limit := range []string{"HANG_TIMEOUT_MS", "MCP_IDLE_TIMEOUT"} {
		t.Setenv(limit, "0") // to open so many sessions may take longer
	}
	quiet := slog.New(slog.DiscardHandler)
	s := newServer(limits(time.Second, quiet), options{calls: 16, approval: time.Second}, quiet)
	web := httptest.NewServer(handler(s, time.Hour))
	t.Cleanup(web.Close)
	t.Cleanup(func() {
		for ss := range s.Sessions() {
			ss.Close()
		}
	})
	connect := func() *mcp.ClientSession {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	busy, idle := connect(), connect()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() {
		_, err := busy.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		stopped <- err
	}()

	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	open := func() {
		r, _ := http.NewRequest(http.MethodPost, web.URL, strings.NewReader(initialize))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	for range 3 * maxSessions {
		open()
	}
	count := func() (n int) {
		for range s.Sessions() {
			n++
		}
		return n
	}
	harness.Eventually(t, "some to be closed", func() bool { return count() <= maxSessions })
	if n := count(); n < maxSessions {
		t.Errorf("%d sessions", n)
	}
	for name, c := range map[string]*mcp.ClientSession{"busy": busy, "idle": idle} {
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case err := <-stopped:
		t.Error("the call has ended:", err)
	default:
	}
	stop()
	<-stopped
}

// If no session leaves room, a new one is turned away; when one is idle again, it goes.
func TestSessionsInUse(t *testing.T) {
	var b sessions
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	var all []*mcp.ServerSession
	for range maxSessions + 1 {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client(), DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	for ss := range s.Sessions() {
		all = append(all, ss)
	}
	var leave []func()
	for _, ss := range all[:maxSessions] {
		l, ok := b.use(s, ss, "tools/call")
		if !ok {
			t.Fatal("no room")
		}
		leave = append(leave, l)
	}
	last := all[maxSessions]
	if _, ok := b.use(s, last, "initialize"); ok {
		t.Error("there is room")
	}
	leave[7]()
	if _, ok := b.use(s, last, "initialize"); !ok {
		t.Error("there is no room")
	}
	_ = all[7].Wait() // until it is closed
}

package mcpgo_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/stream"
)

// streamSilence is the idle limit of the notification streams here; the servers say nothing.
const streamSilence = 100 * time.Millisecond

// sseSilence is that of the old transport, over whose stream the session is made too.
const sseSilence = 5 * time.Second

// A streamLine counts the notification streams of a server.
type streamLine struct {
	h      http.Handler
	mu     sync.Mutex
	opened int
	now    int
	asked  []string // Last-Event-ID of each
}

func (l *streamLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l.mu.Lock()
		l.opened++
		l.now++
		l.asked = append(l.asked, r.Header.Get("Last-Event-ID"))
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			l.now--
			l.mu.Unlock()
		}()
	}
	l.h.ServeHTTP(w, r)
}

func (l *streamLine) state() (opened, now int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened, l.now
}

// streamHeard is what a client has been told.
type streamHeard struct {
	mu  sync.Mutex
	all []float64
}

func (h *streamHeard) add(n mcp.JSONRPCNotification) {
	if v, ok := n.Params.AdditionalFields["value"].(float64); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, v)
	}
}

func (h *streamHeard) values() []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

func streamServer() *server.MCPServer {
	s := server.NewMCPServer("server", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("sleep"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(5 * streamSilence)
		return mcp.NewToolResultText("slept"), nil
	})
	return s
}

func streamUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("still not %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

var streamQuiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// SPEC 9.1: a quiet server's notification stream is closed and reopened, calls go on
// beside it, and what is said then is heard.
func TestNotificationStream(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []server.StreamableHTTPOption
		kept bool
	}{
		{"events are not kept", nil, false},
		{"events are kept", []server.StreamableHTTPOption{server.WithEventStore(server.NewInMemoryEventStore())}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := streamServer()
			sh := server.NewStreamableHTTPServer(s, append(tc.opts, server.WithStateful(true))...)
			defer func() { _ = sh.Shutdown(context.Background()) }()
			l := &streamLine{h: sh}
			srv := httptest.NewServer(l)
			defer srv.Close()
			//lint:ignore SA1019 the stream of all protocols before 2026-07-28
			c, err := client.NewStreamableHttpClient(srv.URL, transport.WithContinuousListening(), transport.WithHTTPLogger(streamQuiet),
				transport.WithHTTPBasicClient(&http.Client{Transport: &stream.Notifications{Idle: streamSilence}}))
			if err != nil {
				t.Fatal(err)
			}
			var h streamHeard
			c.OnNotification(h.add)
			streamStart(t, c)

			streamUntil(t, "reopened", func() bool {
				call := mcp.CallToolRequest{}
				call.Params.Name = "sleep"
				res, err := c.CallTool(t.Context(), call)
				if err != nil || res.IsError {
					t.Fatal(res, err)
				}
				opened, _ := l.state()
				return opened > 2
			})
			said := 0
			for i := range 3 {
				spoken := false
				streamUntil(t, "heard", func() bool {
					// A message is lost if nobody listens and events are not kept, or when
					// the client has not heard any yet, and so cannot say where it was.
					if !spoken || i == 0 || !tc.kept {
						said++
						spoken = true
						s.SendNotificationToAllClients("notifications/news", map[string]any{"value": said})
					}
					time.Sleep(streamSilence / 2)
					all := h.values()
					return len(all) > 0 && all[len(all)-1] == float64(said)
				})
			}
			before, _ := l.state() // whatever would come twice comes with the next streams
			streamUntil(t, "reopened", func() bool { opened, _ := l.state(); return opened >= before+2 })
			got := h.values()
			if lost := said - len(got) - int(got[0]) + 1; tc.kept && lost != 0 {
				t.Errorf("heard %v, and lost %d since the first", got, lost)
			}
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("heard %v, want none twice", got)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			streamUntil(t, "closed", func() bool { _, now := l.state(); return now == 0 })
			if last := l.asked[len(l.asked)-1]; tc.kept != (last != "") {
				t.Errorf("the last stream asked for what came after %q", last)
			}
		})
	}
}

func streamStart(t *testing.T, c *client.Client) {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	req := mcp.InitializeRequest{}
	req.Params.ProtocolVersion = "2025-11-25"
	req.Params.ClientInfo = mcp.Implementation{Name: "client", Version: "1"}
	if _, err := c.Initialize(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// The old transport's stream is the session: when it goes silent, both are over.
func TestSSEStream(t *testing.T) {
	t.Parallel()
	s := streamServer()
	srv := httptest.NewServer(server.NewSSEServer(s))
	defer srv.Close()
	c, err := client.NewSSEMCPClient(srv.URL+"/sse", transport.WithSSELogger(streamQuiet),
		transport.WithHTTPClient(&http.Client{Transport: &stream.Notifications{Idle: sseSilence}}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lost := make(chan error, 1)
	c.OnConnectionLost(func(err error) { lost <- err })
	streamStart(t, c)
	select {
	case err := <-lost:
		if err == nil {
			t.Error("lost without an error")
		}
	case <-time.After(time.Minute):
		t.Fatal("the loss is not noticed")
	}
}

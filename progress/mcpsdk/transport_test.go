package mcpsdk_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// overHTTP links by Streamable HTTP.
func overHTTP(version string, options mcp.StreamableHTTPOptions) link {
	return func(t testing.TB, s *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &options)
		return throughHTTP(t, s, mcpsdk.WrapHTTP(h), func(url string, c *http.Client) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c, MaxRetries: -1}
		}, opts, version)
	}
}

// overSSE links by HTTP with server-sent events.
func overSSE(t testing.TB, s *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
	h := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	return throughHTTP(t, s, mcpsdk.WrapHTTP(h), func(url string, c *http.Client) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: url, HTTPClient: c}
	}, opts, protocol2025)
}

func throughHTTP(t testing.TB, s *mcp.Server, h http.Handler, transport func(string, *http.Client) mcp.Transport, opts *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		for ss := range s.Sessions() { // which live on in a stateful handler
			_ = ss.Close()
		}
	})
	wire := new(wire)
	client := &http.Client{Transport: &http.Transport{DialContext: wire.dial}}
	t.Cleanup(client.CloseIdleConnections)
	cs := newClient(t, opts, version, transport(server.URL, client))
	lines.Store(cs, wire.cut)
	// Before the server waits for its last request to end.
	t.Cleanup(server.CloseClientConnections)
	return cs
}

// A wire is the network connections of a client.
type wire struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.conns = append(w.conns, c)
	}
	return c, err
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// links are all the ways to reach a server in this process.
var links = map[string]link{
	"in-memory 2025-11-25": inMemory(protocol2025),
	"in-memory 2026-07-28": inMemory(protocol2026),
	"SSE":                  overSSE,
	"HTTP":                 overHTTP(protocol2025, mcp.StreamableHTTPOptions{SessionTimeout: time.Minute}),
	"HTTP stateless":       overHTTP(protocol2025, mcp.StreamableHTTPOptions{Stateless: true}),
	"HTTP 2026-07-28":      overHTTP(protocol2026, mcp.StreamableHTTPOptions{Stateless: true}),
	"HTTP 2026-07-28, propagated": overHTTP(protocol2026, mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true}),
	"HTTP, JSON":            overHTTP(protocol2025, mcp.StreamableHTTPOptions{JSONResponse: true}),
	"HTTP stateless, JSON":  overHTTP(protocol2025, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
	"HTTP 2026-07-28, JSON": overHTTP(protocol2026, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
}

// TestStdio is TestEveryTransport for a server that is a process of its own.
func TestStdio(t *testing.T) {
	t.Parallel()
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			everyTool(t, func(t testing.TB, _ *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
				return newClient(t, opts, version, &mcp.CommandTransport{Command: child("tools")})
			}, nil, false)
		})
	}
}

func child(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeEnv+"="+mode, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func everyTool(t *testing.T, connect link, s *mcp.Server, mute bool) {
	h := new(heard)
	cs := connect(t, s, h.options())
	var calls sync.WaitGroup
	for _, tt := range []struct {
		tool    string
		want    []string
		isError bool
	}{
		{"noop", []string{"done"}, false},
		{"report", []string{"done"}, false},
		{"beat", []string{"done"}, false},
		{"silent", []string{"No progress for 3s (idle timeout). Tool should call heartbeat() during long work.", "two of three files"}, true},
		{"lost", []string{"No progress for 3s (idle timeout). Tool should call heartbeat() during long work."}, true},
		{"panic", []string{"panic: no such index"}, true},
		{"fail", []string{"disk is full"}, true},
	} {
		calls.Go(func() {
			p := &mcp.CallToolParams{Name: tt.tool}
			p.SetProgressToken("token of " + tt.tool)
			res, err := cs.CallTool(context.Background(), p)
			if err != nil {
				t.Errorf("%s: %v", tt.tool, err)
				return
			}
			if d := cmp.Diff(tt.want, texts(res)); d != "" || res.IsError != tt.isError {
				t.Errorf("%s: isError %v %s", tt.tool, res.IsError, d)
			}
			if stopped := tt.tool == "silent" || tt.tool == "lost"; stopped != (outcome(res)["kind"] == "idle") {
				t.Errorf("%s: outcome %v", tt.tool, outcome(res))
			}
		})
	}
	calls.Wait()
	byTool := make(map[any][]mcp.ProgressNotificationParams)
	for begun := time.Now(); !mute && time.Since(begun) < slack; time.Sleep(time.Millisecond) { // a stream of its own may lag
		clear(byTool)
		for _, n := range h.list() {
			byTool[n.ProgressToken] = append(byTool[n.ProgressToken], n)
		}
		if len(byTool["token of report"]) > 1 && len(byTool["token of beat"]) > 1 {
			break
		}
	}
	for token, all := range byTool {
		switch increases(t, all); {
		case token != "token of report" && token != "token of beat":
			t.Errorf("%v: %d notifications of a silent tool", token, len(all))
		case len(all) < 2, len(all) > 40:
			t.Errorf("%v: %d notifications", token, len(all))
		}
	}
	if n := len(byTool); (n != 2) != mute {
		t.Errorf("progress of %d tools, want that of 2", n)
	}
}

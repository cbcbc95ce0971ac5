package mcpsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type ids struct{ Request, Session string }

// newIdentified is a server whose tool says which request and session it runs for; with a typed
// handler that has limits of its own, or without.
func newIdentified(typed bool) (*mcp.Server, func() ids) {
	var mu sync.Mutex
	var got ids
	tool := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		call := toolcall.FromContext(ctx)
		got = ids{call.RequestID, call.SessionID}
		return &mcp.CallToolResult{}, nil, nil
	}
	s := newServer()
	if typed {
		mcp.AddTool(s, &mcp.Tool{Name: "id"}, mcpsdk.Handler(tool))
	} else {
		mcpsdk.Install(s, &policy.Policy{})
		mcp.AddTool(s, &mcp.Tool{Name: "id"}, tool)
	}
	return s, func() ids {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// A call has the id of its request as the client has sent it, and that of its session where the
// transport has sessions, with Install and with Handler alone.
func TestIDs(t *testing.T) {
	streamable := func(o mcp.StreamableHTTPOptions) func(*mcp.Server) http.Handler {
		return func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
		}
	}
	sse := func(s *mcp.Server) http.Handler {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	stream := func(url string, c *http.Client) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c}
	}
	for _, tc := range []struct {
		name    string
		handler func(*mcp.Server) http.Handler // nil is in memory
		client  func(url string, c *http.Client) mcp.Transport
		version string
		session bool
	}{
		{"in memory", nil, nil, "", false},
		{"SSE", sse, func(url string, c *http.Client) mcp.Transport {
			return &mcp.SSEClientTransport{Endpoint: url, HTTPClient: c}
		}, "", false},
		{"stateful", streamable(mcp.StreamableHTTPOptions{}), stream, protocol2025, true},
		{"stateless", streamable(mcp.StreamableHTTPOptions{Stateless: true}), stream, protocol2025, false},
		{"2026-07-28", streamable(mcp.StreamableHTTPOptions{Stateless: true}), stream, protocol2026, false},
	} {
		for _, typed := range []bool{false, true} {
			name := tc.name
			if typed {
				name += ", a handler"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, got := newIdentified(typed)
				near, far := mcp.NewInMemoryTransports()
				var transport mcp.Transport = near
				if tc.handler != nil {
					web := httptest.NewServer(mcpsdk.WrapHTTP(tc.handler(s)))
					t.Cleanup(web.Close)
					client := &http.Transport{}
					t.Cleanup(client.CloseIdleConnections)
					transport = tc.client(web.URL, &http.Client{Transport: client})
				} else if _, err := s.Connect(t.Context(), far, nil); err != nil {
					t.Fatal(err)
				}
				var log wireLog
				c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				session, err := c.Connect(t.Context(), &mcp.LoggingTransport{Transport: transport, Writer: &log},
					&mcp.ClientSessionOptions{ProtocolVersion: tc.version})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second has another id
					if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "id"}); err != nil {
						t.Fatal(err)
					}
					want := ids{Request: log.lastCall(t)}
					if tc.session {
						want.Session = session.ID()
					}
					if diff := cmp.Diff(want, got()); diff != "" || want.Request == "" || tc.session && want.Session == "" {
						t.Errorf("%+v (-want +got):\n%s", want, diff)
					}
				}
				_ = session.Close()
			})
		}
	}
}

// An id may be a text, and stand where it likes in the message.
func TestTextID(t *testing.T) {
	s, got := newIdentified(false)
	c := newRawClient(t, s, plain)
	c.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"id","arguments":{}},"id":"a-7"}`)
	if line, ok := <-c.lines; !ok || !strings.Contains(line, `"a-7"`) {
		t.Fatal(line)
	}
	if diff := cmp.Diff(ids{Request: "a-7"}, got()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The ids of a server that a tool runs in memory are its own.
func TestIDsWithin(t *testing.T) {
	within, got := newIdentified(false)
	s := newServer()
	mcpsdk.Install(s, &policy.Policy{})
	mcp.AddTool(s, &mcp.Tool{Name: "outer"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		near, far := mcp.NewInMemoryTransports()
		if _, err := within.Connect(ctx, far, nil); err != nil {
			return nil, nil, err
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
		if err != nil {
			return nil, nil, err
		}
		defer session.Close()
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "id"})
		return &mcp.CallToolResult{}, nil, err
	})
	c := newRawClient(t, s, plain)
	c.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"outer","arguments":{}},"id":"a-7"}`)
	if line, ok := <-c.lines; !ok || strings.Contains(line, "isError") {
		t.Fatal(line)
	}
	if id := got().Request; id == "" || id == "a-7" {
		t.Errorf("the id is %q", id)
	}
}

// A wireLog keeps what mcp.LoggingTransport writes.
type wireLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *wireLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lastCall is the id of the last tools/call that was sent.
func (l *wireLog) lastCall(t *testing.T) (id string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		var m struct {
			ID     json.Number
			Method string
		}
		if text, ok := strings.CutPrefix(line, "write: "); ok && json.Unmarshal([]byte(text), &m) == nil && m.Method == "tools/call" {
			id = m.ID.String()
		}
	}
	return id
}

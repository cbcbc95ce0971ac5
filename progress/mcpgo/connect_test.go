package mcpgo_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var hello = mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "test"}}}

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) string {
	release := make(chan bool)
	ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	t.Cleanup(ts.Close)
	t.Cleanup(func() { close(release) })
	return ts.URL
}

// SPEC 8.4, 8.5: a phase that takes too long is tried again, each time with a client of its
// own, and the first that works is a client that lives on.
func TestConnect(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(server.NewSSEServer(newServer()))
	t.Cleanup(ts.Close)
	t.Cleanup(ts.CloseClientConnections)
	dead := silent(t)
	for _, tc := range []struct {
		name  string
		bad   func() (transport.Interface, error) // the first two
		first string                              // error of the first alone
	}{
		{"transport", func() (transport.Interface, error) { return transport.NewSSE(dead) }, "connecting: transport: Maximum total timeout exceeded: 5s"},
		{"handshake", func() (transport.Interface, error) { return transport.NewStreamableHTTP(dead) }, "connecting: handshake: Maximum total timeout exceeded: 10s"},
		{"handshake, limited", func() (transport.Interface, error) {
			h, err := transport.NewStreamableHTTP(dead)
			return mcpgo.Limit(h, mcpgo.ClientLimits{}, nil), err
		}, `connecting: transport error: calling "initialize": Request timed out: no answer for 5s`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			open := func(opened *int) (*client.Client, error) {
				if *opened++; *opened < 2 {
					bad, err := tc.bad()
					return client.NewClient(bad, client.WithProtocolVersion("2025-11-25")), err
				}
				good, err := transport.NewSSE(ts.URL + "/sse")
				return client.NewClient(good), err
			}
			connect := func(ctx context.Context, retries int) (c *client.Client, result *mcp.InitializeResult, opened int, err error) {
				c, result, err = mcpgo.Connect(ctx, func() (*client.Client, error) { return open(&opened) }, hello,
					&mcpgo.ConnectOptions{Timeout: 5 * time.Second, Backoff: request.Backoff{Retries: retries, First: ms}})
				return c, result, opened, err
			}
			ctx, cancel := context.WithCancel(context.Background())
			c, result, opened, err := connect(ctx, 0)
			cancel()
			if err != nil || opened != 2 || result.ServerInfo.Name != "test" {
				t.Fatalf("%v, %v, opened %d", result, err, opened)
			}
			limits := time.After(11 * time.Second) // of the phases; meanwhile the first alone
			_, _, opened, err = connect(context.Background(), -1)
			var wire *mcpgo.RequestTimeout
			var e *timeout.Error
			if err == nil || err.Error() != tc.first || !errors.As(err, &wire) || !errors.As(err, &e) || opened != 1 {
				t.Errorf("%v, want %s", err, tc.first)
			}

			<-limits
			if _, err := c.CallTool(soon(t), call{tool: "noop"}.request()); err != nil {
				t.Error(err)
			}
			_ = c.Close()
		})
	}
}

// A server that cannot work is not tried again.
func TestConnectHopeless(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuse.Close()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		open func() (transport.Interface, error)
		want error
	}{
		{"no such command", context.Background(), func() (transport.Interface, error) { return transport.NewStdio("no-such-command-anywhere", nil), nil }, exec.ErrNotFound},
		{"the caller is gone", gone, func() (transport.Interface, error) { return transport.NewStreamableHTTP(refuse.URL) }, context.Canceled},
		{"not authorized", context.Background(), func() (transport.Interface, error) { return transport.NewStreamableHTTP(refuse.URL) }, transport.ErrAuthorizationRequired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opened := 0
			_, _, err := mcpgo.Connect(tc.ctx, func() (*client.Client, error) {
				opened++
				tr, err := tc.open()
				return client.NewClient(tr), err
			}, hello, nil)
			if !errors.Is(err, tc.want) || opened > 1 {
				t.Errorf("%v, opened %d", err, opened)
			}
		})
	}
	f := &fake{answer: func(context.Context, int) error { return errGone }}
	_, _, err := mcpgo.Connect(context.Background(), func() (*client.Client, error) { return client.NewClient(f), nil }, hello,
		&mcpgo.ConnectOptions{Backoff: request.Backoff{Retries: -1}})
	if !errors.Is(err, errGone) || f.closed != 1 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
	opened := 0
	_, _, err = mcpgo.Connect(context.Background(), func() (*client.Client, error) { opened++; return nil, errGone }, hello,
		&mcpgo.ConnectOptions{Backoff: request.Backoff{Retries: 1, First: ms}})
	if !errors.Is(err, errGone) || opened != 2 {
		t.Errorf("%v, opened %d", err, opened)
	}
}

// A server that only comes up later.
func TestConnectLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	var ts *httptest.Server
	opened := 0
	c, _, err := mcpgo.Connect(soon(t), func() (*client.Client, error) {
		if opened++; opened == 3 {
			if l, err = net.Listen("tcp", addr); err != nil {
				return nil, err
			}
			ts = &httptest.Server{Listener: l, Config: &http.Server{Handler: server.NewStreamableHTTPServer(newServer())}}
			ts.Start()
		}
		tr, err := transport.NewStreamableHTTP("http://" + addr)
		return client.NewClient(tr), err
	}, hello, &mcpgo.ConnectOptions{Backoff: request.Backoff{First: ms}})
	if err != nil || opened != 3 {
		t.Fatalf("%v, opened %d", err, opened)
	}
	_ = c.Close()
	ts.Close()
}

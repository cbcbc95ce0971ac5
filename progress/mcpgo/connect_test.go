package mcpgo_test

import (
	"context"
	"errors"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"testing/synctest"
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

// SPEC 8.4, 8.5: a phase that takes too long is tried again, each time with a client of its own, and the first that works
// is a client that lives on.
func TestConnect(t *testing.T) {
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or net/http would not see the client go
		<-r.Context().Done()
	})
	for _, tc := range []struct {
		name  string
		bad   func(t *testing.T) transport.Interface // the first
		first string                                 // error of the first alone
		took  time.Duration
	}{
		{"transport", func(t *testing.T) transport.Interface {
			n := sdktest.NewNet(silent)
			hc := n.Client()
			t.Cleanup(func() { n.End(); hc.CloseIdleConnections(); time.Sleep(time.Hour) })
			tr, err := transport.NewSSE("http://localhost/", transport.WithHTTPClient(hc))
			if err != nil {
				t.Fatal(err)
			}
			return tr
		}, "connecting: transport: Maximum total timeout exceeded: 5s", 5 * time.Second},
		{"handshake", func(t *testing.T) transport.Interface { return overNet(t, silent) }, "connecting: handshake: Maximum total timeout exceeded: 10s", 10 * time.Second},
		{"handshake, limited", func(t *testing.T) transport.Interface {
			return mcpgo.Limit(overNet(t, silent), mcpgo.ClientLimits{}, nil)
		}, `connecting: transport error: calling "initialize": Request timed out: no answer for 5s`, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connect := func(retries int) (c *client.Client, result *mcp.InitializeResult, opened int, err error) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					c, result, err = mcpgo.Connect(ctx, func() (*client.Client, error) {
						if opened++; opened < 2 {
							return client.NewClient(tc.bad(t), client.WithProtocolVersion("2025-11-25")), nil
						}
						return client.NewClient(overNet(t, server.NewStreamableHTTPServer(newServer()))), nil
					}, hello, &mcpgo.ConnectOptions{Timeout: 5 * time.Second, Backoff: request.Backoff{Retries: retries, First: ms}})
					return c, result, opened, err
				}
				begun := time.Now()
				_, _, opened, err := connect(-1)
				var wire *mcpgo.RequestTimeout
				var e *timeout.Error
				if took := time.Since(begun); err == nil || err.Error() != tc.first || !errors.As(err, &wire) || !errors.As(err, &e) || opened != 1 || took < tc.took || took > tc.took+250*ms {
					t.Errorf("%v after %v, want %s after %v", err, took, tc.first, tc.took)
				}
				c, result, opened, err := connect(0)
				if err != nil || opened != 2 || result.ServerInfo.Name != "test" {
					t.Fatalf("%v, %v, opened %d", result, err, opened)
				}
				time.Sleep(time.Hour) // past the limits of the phases
				if _, err := c.CallTool(t.Context(), call{tool: "noop"}.request()); err != nil {
					t.Error(err)
				}
				_ = c.Close()
			})
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

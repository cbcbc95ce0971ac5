package mcpgo_test

import (
	"context"
	"errors"
	"io"
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
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hooked transport calls functions of the test.
type hooked struct {
	transport.Interface
	start  func() error
	close  func()
	closed *int
}

func (h hooked) Start(ctx context.Context) error {
	if err := h.start(); err != nil {
		return err
	}
	return h.Interface.Start(ctx)
}

func (h hooked) Close() error { *h.closed++; h.close(); return h.Interface.Close() }

// SPEC 8.4, 8.5: a phase that takes too long is tried again, each time with a client of its own, and the first that works
// is a client that lives on.
func TestConnect(t *testing.T) {
	mute := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
			n := sdktest.NewNet(mute)
			hc := n.Client()
			t.Cleanup(func() { n.End(); hc.CloseIdleConnections(); time.Sleep(time.Hour) })
			tr, err := transport.NewSSE("http://localhost/", transport.WithHTTPClient(hc))
			if err != nil {
				t.Fatal(err)
			}
			return tr
		}, "connecting: transport: Maximum total timeout exceeded: 5s", 5 * time.Second},
		{"handshake", func(t *testing.T) transport.Interface { return overNet(t, mute) }, "connecting: handshake: Maximum total timeout exceeded: 10s", 10 * time.Second},
		{"handshake, limited", func(t *testing.T) transport.Interface {
			return mcpgo.Limit(overNet(t, mute), unlimited())
		}, `connecting: transport error: calling "initialize": Request timed out: no answer for 5s`, 5 * time.Second},
	} {
		sdktest.Bubble(t, tc.name, func(t *testing.T) {
			connect := func(retries int) (c *client.Client, result *mcp.InitializeResult, opened int, err error) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				c, result, err = mcpgo.Connect(ctx, func() (*client.Client, error) {
					if opened++; opened < 2 {
						return client.NewClient(tc.bad(t), client.WithProtocolVersion("2025-11-25")), nil
					}
					return client.NewClient(overNet(t, server.NewStreamableHTTPServer(newServer(silent, nil)))), nil
				}, hello, &mcpgo.ConnectOptions{Timeout: 5 * time.Second, Backoff: request.Backoff{Retries: retries, First: ms}})
				return c, result, opened, err
			}
			begun := time.Now()
			_, _, opened, err := connect(-1)
			var wire *request.Error
			var e *timeout.Error
			if took := time.Since(begun); err == nil || err.Error() != tc.first || !errors.As(err, &wire) || !errors.As(err, &e) || opened != 1 || took < tc.took || took > tc.took+250*ms {
				t.Errorf("%v after %v, want %s after %v", err, took, tc.first, tc.took)
			}
			c, result, opened, err := connect(0)
			if err != nil || opened != 2 || result.ServerInfo.Name != "test" {
				t.Fatalf("%v, %v, opened %d", result, err, opened)
			}
			time.Sleep(time.Hour) // past the limits of the phases
			if _, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}); err != nil {
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
	f := &fake{answer: func(context.Context, int) error { return errOwn }}
	_, _, err := mcpgo.Connect(context.Background(), func() (*client.Client, error) { return client.NewClient(f), nil }, hello,
		&mcpgo.ConnectOptions{Backoff: request.Backoff{Retries: -1}})
	if !errors.Is(err, errOwn) || f.closed != 1 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
	opened := 0
	_, _, err = mcpgo.Connect(context.Background(), func() (*client.Client, error) { opened++; return nil, errOwn }, hello,
		&mcpgo.ConnectOptions{Backoff: request.Backoff{Retries: 1, First: ms}})
	if !errors.Is(err, errOwn) || opened != 2 {
		t.Errorf("%v, opened %d", err, opened)
	}
}

// SPEC 3.24, 8.7: a transport that does not return, panics or ends its goroutine holds Connect no longer than a try and its
// cleaning up may take. A client that comes too late is closed.
func TestConnectOutlastsCode(t *testing.T) {
	for _, place := range []string{"open", "Start", "Close"} {
		for how := range sdktest.Attacks(nil) {
			sdktest.Bubble(t, place+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				at := func(here string) {
					if here == place {
						sdktest.Attacks(release)[how]()
					}
				}
				opened, closed := 0, 0
				var c *client.Client
				var err error
				var panicked any
				begun, returned := time.Now(), make(chan bool)
				go func() {
					defer close(returned)
					defer func() { panicked = recover() }()
					c, _, err = mcpgo.Connect(t.Context(), func() (*client.Client, error) {
						at("open")
						opened++
						start := func() error { at("Start"); return nil }
						if place == "Close" {
							start = func() error { <-release; return errOwn }
						}
						return client.NewClient(hooked{transport.NewInProcessTransport(server.NewMCPServer("test", "1")), start, func() { at("Close") }, &closed}), nil
					}, hello, &mcpgo.ConnectOptions{Timeout: time.Second, Backoff: request.Backoff{Retries: -1}})
				}()
				<-returned
				want := time.Second + 250*ms
				if place == "Close" {
					want += 20 * time.Second
				}
				if took := time.Since(begun); took > want || took == 0 && how == "block" {
					t.Errorf("Connect took %v, want at most %v", took, want)
				}
				if c != nil || how == "block" && timeout.ExitCode(err) != 124 || (panicked != nil) != (how == "panic" && place != "Close") {
					t.Errorf("%v, %v, panic of Connect: %v", c, err, panicked)
				}
				if how == "goexit" && place != "Close" && !errors.Is(err, timeout.ErrGoexit) {
					t.Error(err)
				}
				close(release)
				if synctest.Wait(); opened != closed {
					t.Errorf("%d clients opened, %d closed", opened, closed)
				}
			})
		}
	}
}

package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A connector is a transport that is a function.
type connector func(context.Context) (mcp.Connection, error)

func (f connector) Connect(ctx context.Context) (mcp.Connection, error) { return f(ctx) }

// inMemoryTo returns transports to s.
func inMemoryTo(t *testing.T, s *mcp.Server) func() (mcp.Transport, error) {
	return func() (mcp.Transport, error) {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		_, err := s.Connect(t.Context(), serverSide, nil)
		return clientSide, err
	}
}

// SPEC 8.4, 8.5: each phase has a limit of its own.
func TestConnectPhases(t *testing.T) {
	silent := func(t *testing.T, answered bool) func() (mcp.Transport, error) {
		return func() (mcp.Transport, error) {
			transport := connects(t, func(conn mcp.Connection, req *jsonrpc.Request) {
				if time.Sleep(4 * time.Second); answered {
					initialize(conn, req)
				}
			})
			return connector(func(ctx context.Context) (mcp.Connection, error) {
				time.Sleep(4 * time.Second)
				return transport.Connect(ctx)
			}), nil
		}
	}
	hangs := func(*testing.T, bool) func() (mcp.Transport, error) {
		return func() (mcp.Transport, error) {
			return connector(func(ctx context.Context) (mcp.Connection, error) { <-ctx.Done(); return nil, ctx.Err() }), nil
		}
	}
	for _, test := range []struct {
		name      string
		limited   bool
		transport func(*testing.T, bool) func() (mcp.Transport, error)
		answers   bool
		version   string
		timeout   time.Duration
		took      time.Duration
		message   string // empty: it succeeds
	}{
		{name: "transport", transport: hangs, took: 5 * time.Second, message: "connecting: transport: Request timed out: no answer for 5s"},
		{name: "own limit", transport: hangs, timeout: time.Hour, took: time.Hour, message: "connecting: transport: Request timed out: no answer for 1h0m0s"},
		{name: "handshake", transport: silent, took: 9 * time.Second, message: "connecting: handshake: Request timed out: no answer for 5s"},
		{name: "slow", transport: silent, answers: true, version: "2025-11-25", took: 8 * time.Second},
		{name: "no server/discover", limited: true, transport: silent, answers: true, took: 13 * time.Second},
		{name: "no initialize", limited: true, transport: silent, took: 14*time.Second + 101*ms,
			message: `connecting: calling "initialize": Request timed out: no answer for 5s`},
	} {
		sdktest.Bubble(t, test.name, func(t *testing.T) {
			defer time.Sleep(10 * time.Second) // until the server has seen what it was sent last
			c := newTestClient(nil)
			if test.limited {
				mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Second}, PerMethod: map[string]request.Limits{}}) // Connect's is what counts
			}
			start := time.Now()
			cs, err := mcpsdk.Connect(t.Context(), c, test.transport(t, test.answers), &mcpsdk.ConnectOptions{
				Timeout: test.timeout, Backoff: request.Backoff{Retries: -1}, Session: &mcp.ClientSessionOptions{ProtocolVersion: test.version}})
			took := time.Since(start).Truncate(ms)
			if test.message == "" {
				if err != nil || took != test.took {
					t.Fatalf("%v after %v, want success after %v", err, took, test.took)
				}
				_ = cs.Close()
				return
			}
			e := timedOut(t, err, map[bool]string{false: "connect", true: "initialize"}[test.limited])
			if err.Error() != test.message || took-test.took > ms || test.took-took > ms || e.Kind != timeout.ErrIdle || cs != nil {
				t.Errorf("%q after %v, want %q after %v", err, took, test.message, test.took)
			}
		})
	}
}

// A connection that comes too late is closed.
func TestConnectTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := mcp.NewInMemoryTransports()
		far, err := server.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
			return connector(func(ctx context.Context) (mcp.Connection, error) {
				time.Sleep(time.Hour) // deaf
				return client.Connect(ctx)
			}), nil
		}, &mcpsdk.ConnectOptions{Backoff: request.Backoff{Retries: -1}})
		if e := timedOut(t, err, "connect"); !e.Abandoned || time.Since(start) != 25*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := far.Read(t.Context()); !errors.Is(err, io.EOF) || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		_ = far.Close()
	})
}

// A server that has no tools is not asked for them.
func TestConnectWithoutTools(t *testing.T) {
	s := newTestServer()
	asked := false
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			asked = asked || method == "tools/list"
			return next(ctx, method, req)
		}
	})
	called := 0
	cs, err := mcpsdk.Connect(t.Context(), newTestClient(nil), inMemoryTo(t, s), &mcpsdk.ConnectOptions{Tools: func(tools []*mcp.Tool) {
		if called++; tools != nil {
			t.Error(tools)
		}
	}})
	if err != nil || asked || called != 1 {
		t.Fatalf("%v, asked %v, called %d times", err, asked, called)
	}
	_ = cs.Close()
}

// SPEC 3.24, 8.7: a transport of the caller's that does not return, panics or ends its goroutine holds Connect no longer
// than a try and its cleaning up may take.
func TestConnectOutlastsCode(t *testing.T) {
	for _, place := range []string{"Connect", "Close"} {
		for how := range sdktest.Attacks(nil) {
			if place == "Close" && how != "block" {
				continue // the SDK calls it, too, on a goroutine of its own
			}
			sdktest.Bubble(t, place+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				attack := sdktest.Attacks(release)[how]
				var cs *mcp.ClientSession
				var err error
				var panicked any
				begun, returned := time.Now(), make(chan bool)
				go func() {
					defer close(returned)
					defer func() { panicked = recover() }()
					cs, err = mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
						return connector(func(context.Context) (mcp.Connection, error) {
							if place == "Connect" {
								attack()
							}
							return hostile{attack, release}, nil
						}), nil
					}, &mcpsdk.ConnectOptions{Timeout: time.Second, Backoff: request.Backoff{Retries: -1}})
				}()
				<-returned
				if took := time.Since(begun); took > 21*time.Second || took == 0 && how == "block" {
					t.Errorf("Connect took %v", took)
				}
				if cs != nil || how == "block" && timeout.ExitCode(err) != 124 || how == "goexit" && !errors.Is(err, timeout.ErrGoexit) {
					t.Errorf("%v, %v", cs, err)
				}
				if (panicked != nil) != (how == "panic") {
					t.Errorf("panic of Connect: %v", panicked)
				}
				close(release)
			})
		}
	}
}

// A hostile connection never answers.
type hostile struct {
	close   func()
	release <-chan struct{}
}

func (hostile) SessionID() string { return "" }

func (h hostile) Close() error { h.close(); return nil }

func (hostile) Write(context.Context, jsonrpc.Message) error { return nil }

func (h hostile) Read(context.Context) (jsonrpc.Message, error) {
	<-h.release
	return nil, io.EOF
}

// SPEC 3.15, 8.7: a caller that gives up while the handshake ends gets a session, or an error and no connection.
func TestConnectGivenUpAtTheEnd(t *testing.T) {
	for range 1000 { // about one in fifty gives up between the success and the return
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			near, far := mcp.NewInMemoryTransports()
			conn, err := far.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			open := true
			go func() {
				for {
					msg, err := conn.Read(t.Context())
					if err != nil {
						open = false
						return
					}
					if req, ok := msg.(*jsonrpc.Request); ok && req.Method == "notifications/initialized" {
						go cancel()
					} else if ok {
						initialize(conn, req)
					}
				}
			}()
			cs, err := mcpsdk.Connect(ctx, newTestClient(nil), func() (mcp.Transport, error) { return near, nil },
				&mcpsdk.ConnectOptions{Backoff: request.Backoff{Retries: -1}, Session: &mcp.ClientSessionOptions{ProtocolVersion: protocol2025}})
			if synctest.Wait(); (err == nil) != open || err != nil && !strings.HasPrefix(err.Error(), "connecting: handshake: ") {
				t.Fatalf("%v, and the connection is open: %v", err, open)
			}
			if cs != nil {
				_ = cs.Close()
			}
			_ = conn.Close()
		})
	}
}

// Requests that are made in a handler of the session, with the handler's context, are
// not part of connecting any more.
func TestConnectIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(&mcp.ClientOptions{
			ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				_, err := req.Session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
				return &mcp.ElicitResult{Action: "accept"}, err
			},
		})
		s := newTestServer()
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Hour}, PerMethod: map[string]request.Limits{}})
		addTool(s, "slow", func(ctx context.Context, _ func(float64, string)) error { time.Sleep(time.Minute); return ctx.Err() })
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			return &mcp.CallToolResult{}, err
		})
		cs, err := mcpsdk.Connect(t.Context(), c, inMemoryTo(t, s), &mcpsdk.ConnectOptions{Session: &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); err != nil {
			t.Error(err)
		}
		_ = cs.Close()
	})
}

// The context bounds Connect, and not the session: with SSE the SDK ties the two.
func TestConnectSessionOutlivesContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		hc := overNet(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
		ctx, cancel := context.WithCancel(t.Context())
		cs, err := mcpsdk.Connect(ctx, newTestClient(nil), func() (mcp.Transport, error) {
			return &mcp.SSEClientTransport{Endpoint: "http://localhost/", HTTPClient: hc}, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if time.Sleep(time.Hour); cs.Ping(t.Context(), nil) != nil {
			t.Error("the session is over")
		}
		_ = cs.Close()
	})
}

// An error that no second try can mend ends the tries.
func TestConnectHopeless(t *testing.T) {
	for _, path := range []string{"no-such-command-anywhere", "/no/such/command", t.TempDir()} {
		tries := 0
		_, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
			tries++
			return &mcp.CommandTransport{Command: exec.Command(path)}, nil
		}, nil)
		if err == nil || tries != 1 {
			t.Errorf("%s: %v after %d tries", path, err, tries)
		}
	}
}

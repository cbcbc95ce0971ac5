package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errRefused = errors.New("refused")

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

// SPEC 8.5: three more tries, after 2 s, 4 s and 8 s; each with a transport of its own.
func TestConnectRetries(t *testing.T) {
	for _, test := range []struct {
		name    string
		backoff request.Backoff
		fails   int // how many tries fail
		want    []time.Duration
		ok      bool
	}{
		{"at once", request.Backoff{}, 0, []time.Duration{0}, true},
		{"third", request.Backoff{}, 2, []time.Duration{0, 2 * time.Second, 6 * time.Second}, true},
		{"never", request.Backoff{}, 99, []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}, false},
		{"no retry", request.Backoff{Retries: -1}, 99, []time.Duration{0}, false},
		{"own", request.Backoff{Retries: 1, First: time.Hour}, 99, []time.Duration{0, time.Hour}, false},
		{"at most a minute", request.Backoff{Retries: 4, First: 25 * time.Second}, 99, []time.Duration{0, 25 * time.Second, 75 * time.Second, 135 * time.Second, 195 * time.Second}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer()
				addTool(s, "work", func(context.Context, func(float64, string)) error { return nil })
				start := time.Now()
				var got []time.Duration
				cs, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
					got = append(got, time.Since(start))
					switch {
					case len(got) > test.fails:
						return inMemoryTo(t, s)()
					case len(got)%2 == 0:
						return nil, errRefused // the function may fail itself
					}
					return connector(func(context.Context) (mcp.Connection, error) { return nil, errRefused }), nil
				}, &mcpsdk.ConnectOptions{Backoff: test.backoff})
				if d := cmp.Diff(test.want, got); d != "" {
					t.Error(d)
				}
				if !test.ok {
					if cs != nil || !errors.Is(err, errRefused) || err.Error() != "connecting: refused" {
						t.Errorf("%v, %v", cs, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"}); err != nil {
					t.Error(err)
				}
				_ = cs.Close()
			})
		})
	}
}

// SPEC 8.4, 8.5: each phase has a limit of its own.
func TestConnectPhases(t *testing.T) {
	silent := func(t *testing.T, answered ...string) func() (mcp.Transport, error) {
		return func() (mcp.Transport, error) {
			_, transport := serveRaw(t, func(w *rawServer, req *jsonrpc.Request) {
				time.Sleep(4 * time.Second)
				for _, method := range answered {
					if req.Method == method {
						w.initialize(req)
					}
				}
			})
			return connector(func(ctx context.Context) (mcp.Connection, error) {
				time.Sleep(4 * time.Second)
				return transport.Connect(ctx)
			}), nil
		}
	}
	hangs := func(*testing.T, ...string) func() (mcp.Transport, error) {
		return func() (mcp.Transport, error) {
			return connector(func(ctx context.Context) (mcp.Connection, error) { <-ctx.Done(); return nil, ctx.Err() }), nil
		}
	}
	for _, test := range []struct {
		name      string
		limited   bool
		transport func(*testing.T, ...string) func() (mcp.Transport, error)
		answers   []string
		version   string
		timeout   time.Duration
		took      time.Duration
		message   string // empty: it succeeds
	}{
		{name: "transport", transport: hangs, took: 5 * time.Second, message: "connecting: transport: Request timed out: no answer for 5s"},
		{name: "own limit", transport: hangs, timeout: time.Hour, took: time.Hour, message: "connecting: transport: Request timed out: no answer for 1h0m0s"},
		{name: "handshake", transport: silent, took: 9 * time.Second, message: "connecting: handshake: Request timed out: no answer for 5s"},
		{name: "slow", transport: silent, answers: []string{"initialize"}, version: "2025-11-25", took: 8 * time.Second},
		{name: "slow with Limit", limited: true, transport: silent, answers: []string{"initialize"}, version: "2025-11-25", took: 8 * time.Second},
		{name: "no server/discover", limited: true, transport: silent, answers: []string{"initialize"}, took: 13 * time.Second},
		{name: "no initialize", limited: true, transport: silent, took: 14*time.Second + 101*ms,
			message: `connecting: calling "initialize": Request timed out: no answer for 5s`},
		{name: "own limit of each", limited: true, timeout: time.Hour, transport: silent, took: 2*time.Hour + 4*time.Second + 101*ms,
			message: `connecting: calling "initialize": Request timed out: no answer for 1h0m0s`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(10 * time.Second) // until the server has seen what it was sent last
				c := newTestClient(nil)
				if test.limited {
					mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second}, nil) // Connect's is what counts
				}
				start := time.Now()
				cs, err := mcpsdk.Connect(t.Context(), c, test.transport(t, test.answers...), &mcpsdk.ConnectOptions{
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
				if err.Error() != test.message || took-test.took > ms || test.took-took > ms || e.Kind != timeout.KindIdle || cs != nil {
					t.Errorf("%q after %v, want %q after %v", err, took, test.message, test.took)
				}
			})
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

// The caller's end ends it, in a try, between tries and before the first.
func TestConnectCallerEnds(t *testing.T) {
	refuse := func() (mcp.Transport, error) { return nil, errRefused }
	hang := func() (mcp.Transport, error) {
		return connector(func(ctx context.Context) (mcp.Connection, error) { <-ctx.Done(); return nil, ctx.Err() }), nil
	}
	for _, test := range []struct {
		name      string
		transport func() (mcp.Transport, error)
		after     time.Duration
		cause     error // nil: a deadline
		message   string
	}{
		{"in a try", hang, time.Second, context.Canceled, "connecting: transport: context canceled"},
		{"in a try, with a cause", hang, time.Second, io.ErrNoProgress, "connecting: transport: " + io.ErrNoProgress.Error()},
		{"in a try, by deadline", hang, time.Second, nil, "connecting: transport: Maximum total timeout exceeded: 1s"},
		{"between tries", refuse, time.Second, context.Canceled, "waiting to try again (connecting: refused): context canceled"},
		{"between tries, with a cause", refuse, time.Second, io.ErrNoProgress, "waiting to try again (connecting: refused): " + io.ErrNoProgress.Error()},
		{"between tries, by deadline", refuse, time.Second, nil, "waiting to try again (connecting: refused): Maximum total timeout exceeded: 1s"},
		{"before", hang, 0, context.Canceled, "connecting: transport: context canceled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				want := context.DeadlineExceeded
				if test.cause != nil {
					want = context.Canceled
					var cause context.CancelCauseFunc
					ctx, cause = context.WithCancelCause(t.Context())
					if test.after == 0 {
						cause(test.cause)
					}
					time.AfterFunc(test.after, func() { cause(test.cause) })
				}
				defer cancel()
				start := time.Now()
				cs, err := mcpsdk.Connect(ctx, newTestClient(nil), test.transport, nil)
				if cs != nil || err == nil || err.Error() != test.message || !errors.Is(err, want) || time.Since(start) != test.after {
					t.Errorf("%v, %v after %v", cs, err, time.Since(start))
				}
				if test.cause != nil && !errors.Is(err, test.cause) {
					t.Errorf("%v: the cause is lost", err)
				}
			})
		})
	}
}

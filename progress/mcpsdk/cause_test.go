package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.23: hooks learn why a call of the SDK's own client was aborted, under Serve and WrapHTTP: the
// client's limit, its other words, its connection, a shutdown.
func TestCauseOfAbort(t *testing.T) {
	serve := func(t *testing.T, s *mcp.Server) (cs *mcp.ClientSession, leave, shutdown func()) {
		ctx, cancel := context.WithCancel(context.Background())
		here, there := mcp.NewInMemoryTransports()
		served := make(chan error, 1)
		go func() { served <- mcpsdk.Serve(ctx, s, there, 0) }()
		t.Cleanup(func() { cancel(); <-served })
		cs = newClient(t, nil, protocol2025, here)
		return cs, func() { hangUp(t, cs) }, cancel
	}
	stateful := func(t *testing.T, s *mcp.Server) (*mcp.ClientSession, func(), func()) {
		var drain toolcall.Drain
		web := httptest.NewServer(drain.Handler(mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))))
		t.Cleanup(web.Close)
		cs := newClient(t, nil, protocol2025, &mcp.StreamableClientTransport{Endpoint: web.URL})
		end := func() { // Close would wait for the call
			req, _ := http.NewRequest(http.MethodDelete, web.URL, nil)
			req.Header.Set("Mcp-Session-Id", cs.ID())
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		return cs, end, func() {
			ctx, cancel := context.WithTimeout(context.Background(), slack)
			defer cancel()
			_ = drain.Shutdown(ctx)
		}
	}
	type acts struct{ expire, cancel, leave, shutdown func() }
	expire := func(a acts) { a.expire() }
	stop := func(a acts) { a.cancel() }
	leave := func(a acts) { a.leave() }
	shutdown := func(a acts) { a.shutdown() }
	for name, tc := range map[string]struct {
		link func(*testing.T, *mcp.Server) (*mcp.ClientSession, func(), func())
		act  func(acts)
		want string
	}{
		"Serve, limit":    {serve, expire, "client_timeout"},
		"Serve, cancel":   {serve, stop, "client"},
		"Serve, leaves":   {serve, leave, "disconnected"},
		"Serve, shutdown": {serve, shutdown, "shutdown"},
		"HTTP, limit":     {stateful, expire, "client_timeout"},
		"HTTP, cancel":    {stateful, stop, "client"},
		"HTTP, ends":      {stateful, leave, "session_ended"},
		"HTTP, shutdown":  {stateful, shutdown, "shutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			st := newStopper(s, timeout.Config{})
			cs, away, end := tc.link(t, s)
			ctx := &manual{Context: context.Background(), done: make(chan struct{})}
			defer ctx.end(context.Canceled)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "silent"})
			}()
			<-st.started
			tc.act(acts{
				expire: func() { ctx.end(context.DeadlineExceeded) }, cancel: func() { ctx.end(context.Canceled) },
				leave: away, shutdown: end,
			})
			select {
			case got := <-st.ended:
				if cause := toolcall.CauseOf(got.Err); cause != tc.want {
					t.Errorf("the cause is %q of %v, want %q", cause, got.Err, tc.want)
				}
				var cancelled *toolcall.CancelledError
				if said := errors.As(got.Err, &cancelled); said && cancelled.Reason == "" {
					t.Error("the client's words are missing")
				}
			case <-time.After(slack):
				t.Fatal("the tool runs on")
			}
			ctx.end(context.Canceled)
			<-answered
		})
	}
}

// A manual context ends when it is told to, with any error: a deadline needs no waiting.
type manual struct {
	context.Context
	done chan struct{}
	once sync.Once
	err  error
}

func (m *manual) Done() <-chan struct{} { return m.done }

func (m *manual) Err() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

func (m *manual) end(err error) {
	m.once.Do(func() {
		m.err = err
		close(m.done)
	})
}

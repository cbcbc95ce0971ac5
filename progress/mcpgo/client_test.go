package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// requestTimeout checks what SPEC 8.2 says of the error of a timeout.
func requestTimeout(t *testing.T, err error, method string) *timeout.Error {
	t.Helper()
	var stop *request.Error
	if !errors.As(err, &stop) || !stop.Timeout() || request.CodeTimeout != -32001 {
		t.Fatalf("%T %v: want a *request.Error of a timeout", err, err)
	}
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v: want a *timeout.Error of %s, got %+v", err, method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || !errors.Is(err, mcp.ErrRequestInterrupted) {
		t.Errorf("%v: want context.DeadlineExceeded and mcp.ErrRequestInterrupted, not context.Canceled", err)
	}
	return e
}

// SPEC 3.11, 3.23, 8.2, 8.6: a client that times out, cancels or goes stops the tool, over every transport. Under Serve and
// WrapHTTP the cause is known. Over HTTP mcp-go's client hangs up first, and then says why, where there is a session; a
// client that says nothing has disconnected. Without Serve or WrapHTTP, mcp-go says nothing.
func TestRequestStopsTheTool(t *testing.T) {
	streamable := func(wrap func(http.Handler) http.Handler, opts ...server.StreamableHTTPOption) func(*testing.T, *server.MCPServer) transport.Interface {
		return func(t *testing.T, s *server.MCPServer) transport.Interface {
			return overNet(t, wrap(server.NewStreamableHTTPServer(s, opts...)))
		}
	}
	plain := func(h http.Handler) http.Handler { return h }
	sse := func(t *testing.T, s *server.MCPServer) transport.Interface {
		n := sdktest.NewNet(server.NewSSEServer(s))
		hc := n.Client()
		t.Cleanup(func() { n.End(); hc.CloseIdleConnections(); time.Sleep(time.Hour) })
		tr, err := transport.NewSSE("http://localhost/sse", transport.WithHTTPClient(hc), transport.WithSSELogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	stateless, store := server.WithStateLess(true), func() server.StreamableHTTPOption { return server.WithEventStore(server.NewInMemoryEventStore()) }
	for _, tc := range []struct {
		name              string
		modern            bool
		open              func(*testing.T, *server.MCPServer) transport.Interface
		limit, own, close string // the cause
	}{
		{"lines", false, overLines, "client_timeout", "client", "disconnected"},
		{"lines 2026", true, overLines, "client_timeout", "client", "disconnected"},
		{"SSE", false, sse, "", "", "disconnected"},
		{"HTTP", false, streamable(plain), "", "", ""},
		{"HTTP stateless", false, streamable(plain, stateless), "", "", ""},
		{"HTTP 2026", true, streamable(plain), "", "", ""},
		{"wrapped", false, streamable(mcpgo.WrapHTTP), "client_timeout", "client", "session_ended"},
		{"wrapped, event store", false, streamable(mcpgo.WrapHTTP, store()), "client_timeout", "client", "session_ended"},
		{"wrapped stateless", false, streamable(mcpgo.WrapHTTP, stateless), "disconnected", "disconnected", "disconnected"},
		{"wrapped 2026", true, streamable(mcpgo.WrapHTTP), "disconnected", "disconnected", "disconnected"},
	} {
		for how, cause := range map[string]string{"limit": tc.limit, "own": tc.own, "close": tc.close} {
			sdktest.Bubble(t, tc.name+" "+how, func(t *testing.T) {
				ended := make(chan error, 1)
				c := connect(t, mcpgo.Limit(tc.open(t, newServer(silent, finishes(ended))), &request.Options{Limits: &request.Limits{}, PerMethod: map[string]request.Limits{"tools/*": {Timeout: time.Minute}}}), tc.modern)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				switch how {
				case "own":
					time.AfterFunc(time.Second, func() { cancel(errOwn) })
				case "close":
					time.AfterFunc(time.Second, func() { _ = c.Close() })
				}
				_, err := callTool(ctx, c, "tool", nil)
				switch how {
				case "limit":
					requestTimeout(t, err, "tools/call")
				case "own":
					if !errors.Is(err, context.Canceled) || !errors.Is(err, errOwn) || errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				got := <-ended
				if said := toolcall.CauseOf(got); said != cause || !errors.Is(got, timeout.ErrAborted) {
					t.Errorf("the cause is %q of %v, want %q", said, got, cause)
				}
			})
		}
	}
}

// SPEC 9.1: the stream of notifications has no limit.
func TestStreamHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
		tr := overNet(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
		c := connect(t, mcpgo.Limit(tr, &request.Options{Limits: &request.Limits{Timeout: time.Second, MaxTotal: time.Second}, PerMethod: map[string]request.Limits{}}), true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}) }()
		time.Sleep(24 * time.Hour)
		if len(ended) > 0 {
			t.Errorf("the stream ended with %v", <-ended)
		}
		cancel()
		synctest.Wait()
	})
}

// The effects of a handler that is not slow can be seen when the call has returned, as they can be without us over stdio.
func TestHandlersBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDKServer(sdktest.Config{Tools: map[string]sdktest.Tool{"report": {Run: func(ctx context.Context, _ *sdktest.Call) (*sdktest.Result, error) {
			progress.Report(ctx, progress.Update{Progress: 1})
			return sdktest.Text("done"), nil
		}}}})
		in, out := sdktest.NewPipe(), sdktest.NewPipe()
		go func() { _ = s.Serve(t.Context(), in, out, 0) }()
		c := connect(t, mcpgo.Limit(transport.NewIO(out, in, io.NopCloser(nil)), &request.Options{Limits: &request.Limits{Timeout: never, ResetOnProgress: true}, PerMethod: map[string]request.Limits{}}), false)
		var handled atomic.Int32
		c.OnNotification(func(mcp.JSONRPCNotification) {
			time.Sleep(15 * ms) // the answer waits for 20 ms
			handled.Add(1)
		})
		for i := range 20 {
			if _, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "report", Meta: &mcp.Meta{ProgressToken: "t"}}}); err != nil || handled.Load() != int32(i+1) {
				t.Fatalf("%v, %d handled after %d calls", err, handled.Load(), i+1)
			}
		}
		_, _ = in.Close(), out.Close()
		time.Sleep(time.Hour)
	})
}

// SPEC 3.23, 8.6: both SDKs' clients silent up first when they cancel a call, and then say why. A client that says nothing
// has disconnected.
func TestReasonAfterHangingUp(t *testing.T) {
	for want, limits := range map[string]request.Limits{"client_timeout": {Timeout: 5 * time.Second}, "disconnected": {}} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := newSDKServer(sdktest.Config{
				Tools: map[string]sdktest.Tool{"silent": {Run: func(ctx context.Context, _ *sdktest.Call) (*sdktest.Result, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}},
				Policy: &policy.Policy{Default: new(timeout.Config), ObserveOnly: true}, Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s.Err }},
			})
			tr := overNet(t, s.HTTP(false))
			if limits.Timeout > 0 {
				tr = mcpgo.Limit(tr, &request.Options{Limits: &request.Limits{}, PerMethod: map[string]request.Limits{"tools/call": limits}})
			}
			c := connect(t, tr, false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(30*time.Second, cancel)
			if _, err := callTool(ctx, c, "silent", nil); err == nil {
				t.Error("no error")
			}
			if err := <-ended; toolcall.CauseOf(err) != want {
				t.Errorf("the cause is %q of %v, want %q", toolcall.CauseOf(err), err, want)
			}
			s.Close()
		})
	}
}

// A script is a server with one task, which ends at a given time.
type script struct {
	fake
	start time.Time
	takes time.Duration
	ttl   string
	away  bool // the first tasks/result is answered by a server whose store is

	mu    sync.Mutex
	polls []time.Duration // when
}

func (s *script) task(status string) string {
	return fmt.Sprintf(`{"taskId":"t","status":%q,"createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":%s,"pollInterval":10000}`, status, s.ttl)
}

func (s *script) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	left := s.takes - time.Since(s.start)
	var result string
	switch r.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}`
	case "tools/list":
		result = `{"tools":[{"name":"build","execution":{"taskSupport":"optional"}}]}`
	case "tools/call":
		result = `{"task":` + s.task("working") + `}`
	case "tasks/get":
		s.mu.Lock()
		s.polls = append(s.polls, time.Since(s.start))
		s.mu.Unlock()
		if result = s.task("working"); left <= 0 {
			result = s.task("completed")
		}
	case "tasks/result":
		if s.away {
			s.away = false
			return transport.NewJSONRPCErrorResponse(r.ID, mcp.INTERNAL_ERROR, "no store", nil), nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		result = `{"content":[]}`
	default:
		result = `{}`
	}
	return &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: r.ID, Result: json.RawMessage(result)}, nil
}

// slowCancel answers a tasks/cancel after a while.
type slowCancel struct {
	*script
	takes    time.Duration
	answered atomic.Bool
}

func (s *slowCancel) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == "tasks/cancel" {
		select {
		case <-time.After(s.takes):
			s.answered.Store(true)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.script.SendRequest(ctx, r)
}

// SPEC 11.5: a program that gives up and ends has cancelled the task, if the server takes the request soon.
func TestFollowTasksWaitsForCancel(t *testing.T) {
	for _, tc := range []struct {
		name        string
		takes, want time.Duration
		answered    bool
	}{
		{"at once", 0, time.Second, true},
		{"soon", 200*ms - 1, 1200*ms - 1, true},
		{"too late", time.Second, 1200 * ms, false},
	} {
		sdktest.Bubble(t, tc.name, func(t *testing.T) {
			sc := &slowCancel{script: &script{takes: time.Minute, ttl: "null", start: time.Now()}, takes: tc.takes}
			tr := mcpgo.Limit(sc, following())
			if _, err := tr.SendRequest(t.Context(), transport.JSONRPCRequest{ID: mcp.NewRequestId(1), Method: "initialize"}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := tr.SendRequest(ctx, transport.JSONRPCRequest{ID: mcp.NewRequestId(2), Method: "tools/call", Params: map[string]any{"name": "build"}})
			if got, answered := time.Since(sc.start), sc.answered.Load(); !errors.Is(err, context.DeadlineExceeded) || got != tc.want || answered != tc.answered {
				t.Errorf("%v after %v, answered: %v", err, got, answered)
			}
			time.Sleep(time.Minute) // it is sent on
			if !sc.answered.Load() {
				t.Error("the server was never told")
			}
		})
	}
}

// A rotating server lists other tools each time.
type rotating struct {
	*fake
	lists int
}

func (r *rotating) SendRequest(_ context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	result := `{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}`
	if req.Method == "tools/list" {
		r.lists++
		tools := make([]string, 1000)
		for i := range tools {
			tools[i] = fmt.Sprintf(`{"name":"%d %d %s"}`, r.lists, i, strings.Repeat("x", 1<<10))
		}
		result = `{"tools":[` + strings.Join(tools, ",") + `]}`
	}
	return &transport.JSONRPCResponse{ID: req.ID, Result: json.RawMessage(result)}, nil
}

// SPEC 3.15: a server that lists other tools each time does not fill the memory of a client that follows tasks.
func TestFollowTasksForgetsTools(t *testing.T) {
	l := mcpgo.Limit(&rotating{fake: new(fake)}, following())
	ask := func(method string) {
		if _, err := l.SendRequest(t.Context(), transport.JSONRPCRequest{ID: mcp.NewRequestId(1), Method: method}); err != nil {
			t.Fatal(err)
		}
	}
	ask("initialize")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 40 {
		ask("tools/list")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if more := int64(after.HeapAlloc) - int64(before.HeapAlloc); more > 25<<20 {
		t.Errorf("%d bytes more after %d names of 1 KiB", more, 40*1000)
	}
	runtime.KeepAlive(l)
}

// following are options of a client that follows tasks, and has no limits.
func following() *request.Options {
	o := unlimited()
	o.FollowTasks = true
	return o
}

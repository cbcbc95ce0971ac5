package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// connects is a transport to a server that is a function.
func connects(t testing.TB, handle func(conn mcp.Connection, req *jsonrpc.Request)) mcp.Transport {
	clientSide, serverSide := mcp.NewInMemoryTransports()
	conn, err := serverSide.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			msg, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if req, ok := msg.(*jsonrpc.Request); ok {
				go handle(conn, req)
			}
		}
	}()
	return clientSide
}

// initialize answers initialize.
func initialize(conn mcp.Connection, req *jsonrpc.Request) {
	if req.Method == "initialize" {
		_ = conn.Write(context.Background(), &jsonrpc.Response{ID: req.ID,
			Result: []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"wire","version":"v1"}}`)})
	}
}

// SPEC 8.6: a caller that gives up without a limit gets exactly the error that it would get without Limit.
func TestNoLimits(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestClient(nil)
			mcpsdk.Limit(c, unlimited())
			cs := connectTo(t, c, connects(t, initialize), protocol2025)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if want == context.Canceled {
				time.AfterFunc(time.Second/2, cancel)
			}
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"}); err != want {
				t.Errorf("%v, want %v", err, want)
			}
			synctest.Wait()
		})
	}
}

// SPEC 8.2, 8.4: the handshake's requests have limits; initialize is not cancelled.
func TestClientInitializeIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{}})
		var mu sync.Mutex
		var got []string
		_, err := c.Connect(t.Context(), connects(t, func(_ mcp.Connection, req *jsonrpc.Request) {
			mu.Lock()
			defer mu.Unlock()
			var p struct{ RequestID any }
			_ = json.Unmarshal(req.Params, &p)
			got = append(got, fmt.Sprint(req.Method, " ", req.ID.Raw(), p.RequestID))
		}), nil)
		if e := timedOut(t, err, "initialize"); e.Elapsed != 5*time.Second {
			t.Errorf("%v: %+v", err, e)
		}
		synctest.Wait()
		slices.Sort(got) // the SDK cancels on another goroutine
		if d := cmp.Diff([]string{"initialize 2 <nil>", "notifications/cancelled <nil> 1", "server/discover 1 <nil>"}, got); d != "" {
			t.Error(d)
		}
	})
}

// A server that does not read: the SDK is stuck in writing, and the caller is not. In
// real time, because those who wait for a lock stop the time of a bubble.
func TestClientStuckInWriting(t *testing.T) {
	c := newTestClient(nil)
	mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: 20 * ms}, PerMethod: map[string]request.Limits{"initialize": {}}})
	clientSide, serverSide := mcp.NewInMemoryTransports()
	conn, err := serverSide.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { // the handshake is all that is read
		msg, _ := conn.Read(t.Context())
		initialize(conn, msg.(*jsonrpc.Request))
		_, _ = conn.Read(t.Context())
	}()
	cs, err := c.Connect(t.Context(), clientSide, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	before := timeout.AbandonedCount()
	abandoned := 0
	for range 4 {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"})
		if timedOut(t, err, "tools/call").Abandoned {
			abandoned++
		}
	}
	if abandoned == 0 {
		t.Error("the SDK was never stuck: this tests nothing")
	}
	_ = conn.Close()
	_ = cs.Close()
	for deadline := time.Now().Add(20 * time.Second); timeout.AbandonedCount() > before; time.Sleep(ms) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are still stuck", timeout.AbandonedCount()-before)
		}
	}
}

// Requests for which the SDK takes nil params are renewed, too; those of a custom method
// keep their type.
func TestClientTokenOfEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newTestClient(nil), newTestServer()
		addTool(s, "tool", func(context.Context, func(float64, string)) error { return nil })
		s.AddPrompt(&mcp.Prompt{Name: "p"}, nil)
		s.AddResource(&mcp.Resource{Name: "r", URI: "file:///r"}, nil)
		inner := make(map[string]string) // the type of the request beneath Limit
		c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				inner[method] = fmt.Sprintf("%T %T", req, req.GetParams())
				return next(ctx, method, req)
			}
		})
		slow := request.Limits{Timeout: time.Second, ResetOnProgress: true}
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{}, PerMethod: map[string]request.Limits{"*": slow, "server/discover": {}, "initialize": {}}})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method != "initialize" && !strings.HasPrefix(method, "notifications/") {
					ss := req.GetSession().(*mcp.ServerSession)
					time.Sleep(900 * ms)
					_ = ss.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.GetParams().GetMeta()["progressToken"], Progress: 1})
					time.Sleep(900 * ms)
				}
				return next(ctx, method, req)
			}
		})
		if err := mcp.AddSendingCustomMethod[*customParams, *customResult](c, "acme/search"); err != nil {
			t.Fatal(err)
		}
		if err := mcp.AddReceivingCustomMethod(s, "acme/search", func(_ context.Context, _ *mcp.ServerSession, params *customParams) (*customResult, error) {
			return &customResult{Found: params.Query}, nil
		}); err != nil {
			t.Fatal(err)
		}
		cs := connectClient(t, c, s, "2025-11-25")
		for name, call := range map[string]func() error{
			"tools":     func() error { _, err := cs.ListTools(t.Context(), nil); return err },
			"prompts":   func() error { _, err := cs.ListPrompts(t.Context(), nil); return err },
			"resources": func() error { _, err := cs.ListResources(t.Context(), nil); return err },
			"templates": func() error { _, err := cs.ListResourceTemplates(t.Context(), nil); return err },
			"ping":      func() error { return cs.Ping(t.Context(), nil) },
			"custom": func() error {
				res, err := mcp.CallCustomMethod[*customParams, *customResult](t.Context(), cs, "acme/search", &customParams{Query: "q"})
				if err == nil && res.Found != "q" {
					return errors.New("found " + res.Found)
				}
				return err
			},
		} {
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for method, want := range map[string]string{
			"tools/list":  "*mcp.ClientRequest[github.com/modelcontextprotocol/go-sdk/mcp.Params] *mcp.ListToolsParams",
			"acme/search": "*mcp.ClientRequest[*github.com/tooldeadline/tooldeadline/progress/mcpsdk_test.customParams] *mcpsdk_test.customParams",
		} {
			if inner[method] != want {
				t.Errorf("%s is sent on as %s, want %s", method, inner[method], want)
			}
		}
	})
}

type customParams struct {
	mcp.ParamsBase
	Query string `json:"query"`
}

type customResult struct {
	mcp.ResultBase
	Found string `json:"found"`
}

// While a person is asked on behalf of a request, its limits run, unless the handler
// holds the idle check; the token stays the same when the SDK sends the request again.
func TestClientInputRequired(t *testing.T) {
	for _, hold := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestClient(&mcp.ClientOptions{
				ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if hold {
						defer heartbeat.Hold(ctx)()
					}
					select {
					case <-time.After(time.Minute):
						return &mcp.ElicitResult{Action: "accept"}, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				},
			})
			s := newTestServer()
			mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Second, ResetOnProgress: true}, PerMethod: map[string]request.Limits{}})
			s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for i := range 3 {
					time.Sleep(900 * ms)
					_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)})
				}
				if len(req.Params.InputResponses) == 0 {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "?"}}}, nil
				}
				return &mcp.CallToolResult{}, nil
			})
			cs := connectClient(t, c, s, "2026-07-28")
			start := time.Now()
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if hold {
				if took := time.Since(start); err != nil || took != time.Minute+5400*ms {
					t.Errorf("%v after %v", err, took)
				}
				return
			}
			if e := timedOut(t, err, "tools/call"); e.Elapsed != 3700*ms {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

// SPEC 7.9, 8.1: before 2026-07-28 the handler is not called within a request. Hold has nothing
// to hold there, and the server's keep-alive renews the limit.
func TestClientElicitationBefore2026(t *testing.T) {
	for name, tt := range map[string]struct {
		limits request.Limits
		ends   time.Duration
	}{
		"progress renews": {request.Limits{Timeout: 15 * time.Second, ResetOnProgress: true}, 25 * time.Second},
		"no renewal":      {request.Limits{Timeout: 15 * time.Second}, 10500 * ms}, // the server knows, and answers before that
	} {
		sdktest.Bubble(t, name, func(t *testing.T) {
			c := newTestClient(&mcp.ClientOptions{
				ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					defer heartbeat.Hold(ctx)()
					if err := sdktest.Sleep(ctx, 25*time.Second); err != nil {
						return nil, err
					}
					return &mcp.ElicitResult{Action: "accept"}, nil
				},
			})
			mcpsdk.Limit(c, &request.Options{Limits: &tt.limits, PerMethod: map[string]request.Limits{}})
			s := newTestServer()
			s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, elicitByResult)
			mcpsdk.Install(s, nil)
			cs := connectClient(t, c, s, protocol2025)
			start := time.Now()
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if took := time.Since(start); took != tt.ends || err != nil || res.IsError == tt.limits.ResetOnProgress {
				t.Errorf("%+v, %v after %v", res, err, took)
			}
		})
	}
}

// SPEC 9.1: a stream of notifications has no limit.
func TestClientStreamHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int64
		c := newTestClient(&mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes.Add(1) }})
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Second, MaxTotal: time.Second}, PerMethod: map[string]request.Limits{"subscriptions/listen": {Timeout: 1}}})
		s := newTestServer()
		addHang(s, "first")
		listening := false
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				listening = listening || method == "subscriptions/listen"
				return next(ctx, method, req)
			}
		})
		connectClient(t, c, s, "2026-07-28")
		time.Sleep(24 * time.Hour)
		before := changes.Load()
		addHang(s, "second")
		time.Sleep(time.Hour)
		if got := changes.Load() - before; got != 1 || !listening {
			t.Errorf("%d changes seen, want 1; listening: %v", got, listening)
		}
	})
}

// Two sessions of one client, whose callers use the same token.
func TestClientTwoSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Second, ResetOnProgress: true}, PerMethod: map[string]request.Limits{}})
		quiet, busy := newTestServer(), newTestServer()
		addHang(quiet, "work")
		addTool(busy, "work", func(ctx context.Context, report func(float64, string)) error {
			for i := range 5 {
				time.Sleep(900 * ms)
				report(float64(i), "")
			}
			return ctx.Err()
		})
		quietSession, busySession := connectClient(t, c, quiet, ""), connectClient(t, c, busy, "")
		call := func(cs *mcp.ClientSession) error {
			params := &mcp.CallToolParams{Name: "work"}
			params.SetProgressToken("same")
			_, err := cs.CallTool(t.Context(), params)
			return err
		}
		done := make(chan error)
		go func() { done <- call(busySession) }()
		if e := timedOut(t, call(quietSession), "tools/call"); e.Elapsed != time.Second {
			t.Errorf("%+v", e)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// SPEC 8.1, 8.2 over every transport: progress renews the limit of a call, a call that times out is cancelled at the
// server, with the reason, and the session goes on.
func TestClientTransports(t *testing.T) {
	overHTTP := func(o *mcp.StreamableHTTPOptions) func(*testing.T, *mcp.Server) mcp.Transport {
		return func(t *testing.T, s *mcp.Server) mcp.Transport {
			c := overNet(t, streamable(t, s, o))
			return &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: c}
		}
	}
	for _, tc := range []struct {
		name, version string
		transport     func(*testing.T, *mcp.Server) mcp.Transport
		silent        bool // the transport carries no progress
		deaf          bool // the server is not told of a cancellation: a limit of the SDK
	}{
		{name: "sse", version: protocol2025, transport: func(t *testing.T, s *mcp.Server) mcp.Transport {
			c := overNet(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
			return &mcp.SSEClientTransport{Endpoint: "http://localhost/", HTTPClient: c}
		}},
		{name: "streamable", version: protocol2025, transport: overHTTP(nil)},
		{name: "streamable with JSON", version: protocol2025, transport: overHTTP(&mcp.StreamableHTTPOptions{JSONResponse: true})},
		{name: "stateless", version: protocol2026, transport: overHTTP(&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})},
		{name: "stateless with JSON", version: protocol2026, silent: true,
			transport: overHTTP(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true})},
		{name: "stateless", version: protocol2025, deaf: true, transport: overHTTP(&mcp.StreamableHTTPOptions{Stateless: true})},
	} {
		sdktest.Bubble(t, tc.name+"/"+tc.version, func(t *testing.T) {
			s := newTestServer()
			addTool(s, "work", func(ctx context.Context, report func(float64, string)) error {
				for i := range 70 {
					if err := sdktest.Sleep(ctx, 100*ms); err != nil {
						return err
					}
					report(float64(i+1), "")
				}
				return nil
			})
			var cancelled atomic.Int32
			addTool(s, "hang", func(ctx context.Context, _ func(float64, string)) error {
				if sdktest.Sleep(ctx, time.Minute) != nil { // or a server that is not told of it could not be closed
					cancelled.Add(1)
				}
				return ctx.Err()
			})
			c := newTestClient(nil)
			mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Minute}, PerMethod: map[string]request.Limits{}})
			cs := connectTo(t, c, tc.transport(t, s), tc.version)
			ctx := request.WithLimits(t.Context(), request.Limits{Timeout: 5 * time.Second, ResetOnProgress: true})
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"}); tc.silent {
				timedOut(t, err, "tools/call")
			} else if err != nil {
				t.Errorf("with progress: %v", err)
			}
			for _, l := range []request.Limits{{Timeout: 5 * time.Second}, {MaxTotal: 5 * time.Second}} {
				_, err := cs.CallTool(request.WithLimits(t.Context(), l), &mcp.CallToolParams{Name: "hang"})
				if e := timedOut(t, err, "tools/call"); e.Elapsed != 5*time.Second {
					t.Errorf("%+v", e)
				}
			}
			time.Sleep(time.Second)
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Errorf("after the timeouts: %v", err)
			}
			if n := cancelled.Load(); n != 2 && !tc.deaf {
				t.Errorf("%d of 2 calls were cancelled at the server", n)
			}
			time.Sleep(time.Minute)
		})
	}
}

// What one server declares is nothing to another's calls.
func TestDeclarationsOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, &request.Options{Limits: &request.Limits{Timeout: time.Minute}, PerMethod: map[string]request.Limits{}, Declared: &request.Limits{}})
		for _, declared := range []time.Duration{time.Second, 0} {
			s, tool := newTestServer(), &mcp.Tool{Name: "hang", InputSchema: anyInput}
			if declared > 0 {
				tool.Meta = mcp.Meta{policy.DeclarationKey: policy.Declaration{Total: declared}}
			}
			s.AddTool(tool, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			cs := connectClient(t, c, s, protocol2025)
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "hang"})
			if got := timedOut(t, err, "tools/call").Elapsed; (got < time.Minute) != (declared > 0) {
				t.Error(got)
			}
		}
	})
}

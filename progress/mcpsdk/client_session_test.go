package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.4: a request has the limits of WithLimits, or else of its method, or else the
// defaults.
func TestClientWhichLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newTestClient(nil), newTestServer()
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 4 * time.Second}, map[string]mcpsdk.ClientLimits{
			"tools/call": {Timeout: time.Second}, "tools/*": {Timeout: 2 * time.Second}, "resources/*": {MaxTotal: 3 * time.Second}, "initialize": {}})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method != "initialize" && !strings.HasPrefix(method, "notifications/") {
					<-ctx.Done()
				}
				return next(ctx, method, req)
			}
		})
		cs := connectClient(t, c, s, "2025-11-25")
		got := make(map[string]time.Duration)
		measure := func(name, method string, call func() error) {
			start := time.Now()
			timedOut(t, call(), method)
			got[name] = time.Since(start)
		}
		ctx := t.Context()
		measure("call", "tools/call", func() error { _, err := cs.CallTool(ctx, nil); return err })
		measure("list", "tools/list", func() error { _, err := cs.ListTools(ctx, nil); return err })
		measure("templates", "resources/templates/list", func() error { _, err := cs.ListResourceTemplates(ctx, nil); return err })
		measure("ping", "ping", func() error { return cs.Ping(ctx, nil) })
		own := mcpsdk.WithLimits(ctx, mcpsdk.ClientLimits{MaxTotal: 5 * time.Second})
		measure("own", "tools/call", func() error { _, err := cs.CallTool(own, nil); return err })
		want := map[string]time.Duration{"call": time.Second, "list": 2 * time.Second, "templates": 3 * time.Second, "ping": 4 * time.Second, "own": 5 * time.Second}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// SPEC 8.4.
func TestReferenceLimits(t *testing.T) {
	l := request.DefaultLimits()
	want := mcpsdk.ClientLimits{Timeout: 30 * time.Second, MaxTotal: 30 * time.Minute, ResetOnProgress: true}
	if d := cmp.Diff(want, l["tools/call"]); d != "" {
		t.Error(d)
	}
	delete(l, "tools/call") // the map is the caller's
	if len(request.DefaultLimits()) != len(l)+1 {
		t.Error("the map is shared")
	}
}

// SPEC 3.11, 3.12: the caller's cancellation is one, and its deadline is a timeout.
func TestClientCallerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newTestClient(nil), newTestServer()
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute, ResetOnProgress: true}, nil)
		cancelled := addHang(s, "hang")
		cs := connectClient(t, c, s, "")

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(io.ErrNoProgress) })
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		var e *timeout.Error
		if !errors.Is(err, context.Canceled) || !errors.Is(err, io.ErrNoProgress) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.Kind != timeout.KindAborted {
			t.Errorf("%v", err)
		}
		if want := `calling "tools/call": ` + io.ErrNoProgress.Error(); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		<-cancelled

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		if e := timedOut(t, err, "tools/call"); e.Kind != timeout.KindTotal || e.Limit != time.Second {
			t.Errorf("%v: %+v", err, e)
		}
		<-cancelled
	})
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
			mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
			s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
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
		limits mcpsdk.ClientLimits
		ends   time.Duration
	}{
		"progress renews": {mcpsdk.ClientLimits{Timeout: 15 * time.Second, ResetOnProgress: true}, 25 * time.Second},
		"no renewal":      {mcpsdk.ClientLimits{Timeout: 15 * time.Second}, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestClient(&mcp.ClientOptions{
					ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						defer heartbeat.Hold(ctx)()
						if err := sleep(ctx, 25*time.Second); err != nil {
							return nil, err
						}
						return &mcp.ElicitResult{Action: "accept"}, nil
					},
				})
				mcpsdk.Limit(c, tt.limits, nil)
				s := newTestServer()
				s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, elicitByResult)
				mcpsdk.Install(s, nil)
				cs := connectClient(t, c, s, protocol2025)
				start := time.Now()
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
				if took := time.Since(start); took != tt.ends || (err == nil) != tt.limits.ResetOnProgress {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// SPEC 9.1: a stream of notifications has no limit.
func TestClientStreamHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int64
		c := newTestClient(&mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes.Add(1) }})
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, MaxTotal: time.Second}, map[string]mcpsdk.ClientLimits{"subscriptions/listen": {Timeout: 1}})
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
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
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

// A handler that does not return, as a test's that calls FailNow, is the last of nothing but
// itself.
func TestClientHandlerExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 2)
		c, s := newTestClient(&mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				if got <- req.Params.Message; req.Params.Message == "first" {
					runtime.Goexit()
				}
			},
		}), newTestServer()
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
		addTool(s, "work", func(_ context.Context, report func(float64, string)) error {
			report(1, "first")
			report(2, "second")
			return nil
		})
		cs := connectClient(t, c, s, "2025-11-25")
		params := &mcp.CallToolParams{Name: "work"}
		params.SetProgressToken("mine")
		if _, err := cs.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("the handler was called %d times, want 2", len(got))
		}
	})
}

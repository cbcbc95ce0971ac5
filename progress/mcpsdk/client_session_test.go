package mcpsdk_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

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

package mcpsdk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 10.2: the client of a server that declares its limits waits as long as the server does, and
// no longer.
func TestUseDeclared(t *testing.T) {
	const grace, margin = time.Second, time.Second
	for _, version := range protocols {
		for _, tt := range []struct {
			name      string
			ceiling   mcpsdk.ClientLimits
			perMethod map[string]mcpsdk.ClientLimits
			own       *mcpsdk.ClientLimits
			list      bool
			tool      string
			after     time.Duration // 0: the answer comes
			kind      timeout.Kind
		}{
			{"a tool that beats, beyond the default", mcpsdk.ClientLimits{}, nil, nil, true, "beats", 0, 0},
			{"an answer in the grace", mcpsdk.ClientLimits{}, nil, nil, true, "late", 0, 0},
			{"not listed, so the server's", mcpsdk.ClientLimits{}, nil, nil, false, "deaf", 20*time.Second + grace + margin, timeout.KindIdle},
			{"idle", mcpsdk.ClientLimits{}, nil, nil, true, "deaf", 3*time.Minute + grace + margin, timeout.KindIdle},
			{"the ceiling", mcpsdk.ClientLimits{Timeout: time.Minute}, nil, nil, true, "deaf", time.Minute, timeout.KindIdle},
			{"the ceiling's cap", mcpsdk.ClientLimits{MaxTotal: 2 * time.Minute}, nil, nil, true, "deaf", 2 * time.Minute, timeout.KindTotal},
			{"the user's own", mcpsdk.ClientLimits{}, map[string]mcpsdk.ClientLimits{"tools/*": {Timeout: 7 * time.Second}}, nil, true, "deaf", 7 * time.Second, timeout.KindIdle},
			{"the request's own", mcpsdk.ClientLimits{}, map[string]mcpsdk.ClientLimits{"tools/*": {Timeout: 7 * time.Second}},
				&mcpsdk.ClientLimits{Timeout: 3 * time.Second}, true, "deaf", 3 * time.Second, timeout.KindIdle},
		} {
			t.Run(version+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newTestServer()
					addTool(s, "beats", func(ctx context.Context, _ func(float64, string)) error {
						for range 20 {
							time.Sleep(30 * time.Second)
							progress.Report(ctx, progress.Update{})
						}
						return nil
					})
					// Answers at the end of its grace.
					addTool(s, "late", func(ctx context.Context, _ func(float64, string)) error {
						<-ctx.Done()
						time.Sleep(grace - 1)
						return nil
					})
					addTool(s, "deaf", func(context.Context, func(float64, string)) error {
						time.Sleep(time.Hour)
						return nil
					})
					p := &policy.Policy{
						Default: &timeout.Config{Idle: 20 * time.Second, Grace: grace},
						Tools: map[string]policy.Tool{
							"beats": {Limits: &timeout.Config{Idle: 40 * time.Second, Grace: grace}},
							"late":  {Limits: &timeout.Config{Total: 2 * time.Minute, Grace: grace}},
							"deaf":  {Limits: &timeout.Config{Idle: 3 * time.Minute, Total: time.Hour, Grace: grace}},
						},
					}
					mcpsdk.Install(s, p, mcpsdk.WithDeclaredLimits())
					if tt.after != 0 { // a server that declares and does not keep its word
						s = newTestServer()
						addTool(s, "deaf", func(ctx context.Context, _ func(float64, string)) error {
							<-ctx.Done()
							return nil
						})
						declare := new(policy.Policy)
						*declare = policy.Policy{Default: p.Default, Tools: p.Tools}
						s.AddReceivingMiddleware(onlyDeclares(mcpsdk.Middleware(declare, mcpsdk.WithDeclaredLimits())))
					}

					c := newTestClient(nil)
					mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 5 * time.Second}, tt.perMethod, nil, mcpsdk.UseDeclared(tt.ceiling))
					cs := connectClient(t, c, s, version)
					if tt.list {
						if _, err := cs.ListTools(t.Context(), nil); err != nil {
							t.Fatal(err)
						}
					}
					ctx := t.Context()
					if tt.own != nil {
						ctx = mcpsdk.WithLimits(ctx, *tt.own)
					}
					start := time.Now()
					_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tt.tool})
					if tt.after == 0 {
						if err != nil {
							t.Errorf("%v after %v", err, time.Since(start))
						}
						return
					}
					if e := timedOut(t, err, "tools/call"); e.Kind != tt.kind || time.Since(start) != tt.after {
						t.Errorf("%v after %v, want %v after %v", e.Kind, time.Since(start), tt.kind, tt.after)
					}
				})
			})
		}
	}
}

// onlyDeclares has a middleware see everything but the calls.
func onlyDeclares(m mcp.Middleware) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		inside := m(next)
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				return next(ctx, method, req)
			}
			return inside(ctx, method, req)
		}
	}
}

// What one server declares is nothing to another's calls, and goes with its session.
func TestDeclarationsOfASession(t *testing.T) {
	t.Parallel()
	c := newTestClient(nil)
	mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil, mcpsdk.UseDeclared(mcpsdk.ClientLimits{}))
	limited := func(cs *mcp.ClientSession) error {
		if _, err := cs.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		return err
	}
	declaring, silent := newTestServer(), newTestServer()
	addHang(declaring, "hang")
	addHang(silent, "hang")
	declaring.AddReceivingMiddleware(onlyDeclares(mcpsdk.Middleware(
		&policy.Policy{Default: &timeout.Config{Total: time.Millisecond, Grace: -1}}, mcpsdk.WithDeclaredLimits())))
	var stop *timeout.Error
	if err := limited(connectClient(t, c, declaring, protocol2025)); !errors.As(err, &stop) || stop.Limit != time.Second+time.Millisecond {
		t.Error(err)
	}
	if err := limited(connectClient(t, c, silent, protocol2025)); !errors.As(err, &stop) || stop.Limit < 2*time.Second {
		t.Error(err)
	}
}

// SPEC 10.3: what a server declares for a method holds for a client that has no other limits for it.
func TestDeclaredMethods(t *testing.T) {
	const margin = time.Second
	for _, tt := range []struct {
		name      string
		perMethod map[string]mcpsdk.ClientLimits
		ceiling   mcpsdk.ClientLimits
		after     time.Duration
	}{
		{"declared", nil, mcpsdk.ClientLimits{}, 20*time.Second + margin},
		{"under the ceiling", nil, mcpsdk.ClientLimits{MaxTotal: 9 * time.Second}, 9 * time.Second},
		{"the user's own", map[string]mcpsdk.ClientLimits{"tools/*": {MaxTotal: 7 * time.Second}}, mcpsdk.ClientLimits{}, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer()
				s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if method == "tools/list" {
							<-ctx.Done()
						}
						return next(ctx, method, req)
					}
				})
				addHang(s, "hang")
				mcpsdk.Install(s, nil, mcpsdk.WithDeclaredMethods(map[string]policy.Declaration{"tools/list": {Total: 20 * time.Second}}))
				c := newTestClient(nil)
				mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Hour}, tt.perMethod, mcpsdk.UseDeclared(tt.ceiling))
				cs := connectClient(t, c, s, protocol2025)
				start := time.Now()
				_, err := cs.ListTools(t.Context(), nil)
				if timedOut(t, err, "tools/list"); time.Since(start) != tt.after {
					t.Errorf("after %v, want %v", time.Since(start), tt.after)
				}
			})
		})
	}
}

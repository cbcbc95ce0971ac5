package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// recorder is a ProgressNotificationHandler that notes what it gets.
type recorder struct {
	mu  sync.Mutex
	got []mcp.ProgressNotificationParams
}

func (r *recorder) handle(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, *req.Params)
}

func (r *recorder) all() []mcp.ProgressNotificationParams {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// SPEC 8.3: the handler gets what it gets without Limit, the caller's own token and the
// message included, and nothing of requests that nobody asked progress of.
func TestClientOwnToken(t *testing.T) {
	for _, test := range []struct {
		name  string
		token any
		want  any
	}{
		{"string", "mine", "mine"},
		{"int", 7, 7.0},
		{"none", nil, nil},
	} {
		for _, limited := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/limited=%v", test.name, limited), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var handler recorder
					c, s := newTestClient(&mcp.ClientOptions{ProgressNotificationHandler: handler.handle}), newTestServer()
					if limited {
						mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
					}
					addTool(s, "work", func(ctx context.Context, report func(float64, string)) error {
						for i := range 3 {
							time.Sleep(900 * ms)
							report(float64(i+1), fmt.Sprint("step ", i+1))
						}
						return ctx.Err()
					})
					cs := connectClient(t, c, s, "")

					params := &mcp.CallToolParams{Name: "work"}
					if test.token != nil {
						params.SetProgressToken(test.token)
					}
					if _, err := cs.CallTool(t.Context(), params); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if got := params.GetProgressToken(); got != test.token {
						t.Errorf("the caller's token has become %v", got)
					}
					var want []mcp.ProgressNotificationParams
					for i := range 3 {
						if test.want != nil {
							want = append(want, mcp.ProgressNotificationParams{ProgressToken: test.want, Progress: float64(i + 1), Message: fmt.Sprint("step ", i+1)})
						}
					}
					if d := cmp.Diff(want, handler.all()); d != "" {
						t.Error(d)
					}
				})
			})
		}
	}
}

// SPEC 8.3: a slow handler, of progress or of anything else, delays no reset. The
// handlers still run in order, one after the other.
func TestClientSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		running := 0
		slow := func(ctx context.Context, what string) {
			if running++; running != 1 {
				t.Error("two handlers run at once")
			}
			time.Sleep(time.Hour)
			if ctx.Err() != nil {
				t.Error("the context of a handler has ended")
			}
			got = append(got, what)
			running--
		}
		c, s := newTestClient(&mcp.ClientOptions{
			ProgressNotificationHandler: func(ctx context.Context, req *mcp.ProgressNotificationClientRequest) { slow(ctx, req.Params.Message) },
			ToolListChangedHandler:      func(ctx context.Context, _ *mcp.ToolListChangedRequest) { slow(ctx, "tools") },
		}), newTestServer()
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
		s.AddTool(&mcp.Tool{Name: "work", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			addHang(s, "new")
			for i := range 20 {
				time.Sleep(900 * ms)
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Message: fmt.Sprint(i)})
			}
			return &mcp.CallToolResult{}, nil
		})
		cs := connectClient(t, c, s, "2025-11-25")
		params := &mcp.CallToolParams{Name: "work"}
		params.SetProgressToken("mine")
		start := time.Now()
		if _, err := cs.CallTool(t.Context(), params); err != nil || time.Since(start) != 18*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		want := strings.Fields("tools 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19")
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// SPEC 8.3: hundreds of calls in one session, each renewed by its own progress and by no
// other's.
func TestClientManyCalls(t *testing.T) {
	for _, version := range protocols {
		synctest.Test(t, func(t *testing.T) {
			var handler recorder
			c, s := newTestClient(&mcp.ClientOptions{ProgressNotificationHandler: handler.handle}), newTestServer()
			mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, nil)
			addTool(s, "works", func(ctx context.Context, report func(float64, string)) error {
				time.Sleep(900 * ms)
				report(1, "")
				time.Sleep(900 * ms)
				return ctx.Err()
			})
			addTool(s, "hangs", func(ctx context.Context, report func(float64, string)) error {
				<-ctx.Done()
				return ctx.Err()
			})
			cs := connectClient(t, c, s, version)
			const n = 300
			// The caller may use its params for several requests at a time; with the newer
			// protocol the SDK itself writes to them.
			newShared := func() *mcp.CallToolParams {
				return &mcp.CallToolParams{Name: "works", Arguments: map[string]any{}, Meta: mcp.Meta{"progressToken": 0, "other": "kept"}}
			}
			shared := newShared()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					params := shared
					if version != "2025-11-25" {
						params = newShared()
					}
					if i%3 > 0 {
						params = &mcp.CallToolParams{Name: "works"}
						params.SetProgressToken(i)
					}
					if i%3 == 2 {
						params.Name = "hangs"
					}
					_, err := cs.CallTool(t.Context(), params)
					if i%3 == 2 {
						timedOut(t, err, "tools/call")
					} else if err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			got := make(map[any]int)
			for _, p := range handler.all() {
				got[p.ProgressToken]++
			}
			want := map[any]int{0.0: (n + 2) / 3}
			for i := range n {
				if i%3 == 1 {
					want[float64(i)] = 1
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(mcp.Meta{"progressToken": 0, "other": "kept"}, shared.Meta); d != "" {
				t.Error(d)
			}
		})
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
		slow := mcpsdk.ClientLimits{Timeout: time.Second, ResetOnProgress: true}
		mcpsdk.Limit(c, mcpsdk.ClientLimits{}, map[string]mcpsdk.ClientLimits{"*": slow, "server/discover": {}, "initialize": {}})
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

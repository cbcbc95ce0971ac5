package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

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

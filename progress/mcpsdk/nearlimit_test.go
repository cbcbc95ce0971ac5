package mcpsdk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 7.11: a result that comes with less than a tenth of the total left says what was left.
func TestNearLimit(t *testing.T) {
	limits := &policy.Policy{Default: &timeout.Config{Total: 10 * time.Second}}
	shared := textResult("done")
	raw := func(res *mcp.CallToolResult, err error) func(*mcp.Server, time.Duration) {
		return func(s *mcp.Server, after time.Duration) {
			s.AddTool(&mcp.Tool{Name: "near", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return res, errors.Join(sleep(ctx, after), err)
			})
			mcpsdk.Install(s, limits)
		}
	}
	typed := func(h mcp.ToolHandlerFor[struct{}, map[string]int], install bool) func(*mcp.Server, time.Duration) {
		return func(s *mcp.Server, after time.Duration) {
			slow := func(ctx context.Context, req *mcp.CallToolRequest, in struct{}) (*mcp.CallToolResult, map[string]int, error) {
				_ = sleep(ctx, after)
				return h(ctx, req, in)
			}
			if install {
				mcp.AddTool(s, &mcp.Tool{Name: "near"}, slow)
				mcpsdk.Install(s, limits)
			} else {
				mcp.AddTool(s, &mcp.Tool{Name: "near"}, mcpsdk.Handler(slow, mcpsdk.WithPolicy(limits)))
			}
		}
	}
	fine := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]int, error) {
		return nil, map[string]int{"lines": 3}, nil
	}
	fails := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]int, error) {
		return nil, nil, errors.New("no such file")
	}
	for _, tt := range []struct {
		name string
		add  func(*mcp.Server, time.Duration)
		text string
		code float64
	}{
		{"raw", raw(shared, nil), "done", 0},
		{"raw, an error", raw(nil, errors.New("no such file")), "no such file", 1},
		{"typed", typed(fine, true), `{"lines":3}`, 0},
		{"typed, an error", typed(fails, true), "no such file", 1},
		{"Handler", typed(fine, false), `{"lines":3}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, after := range []time.Duration{9 * time.Second, 9*time.Second + time.Millisecond} {
					s := newServer()
					tt.add(s, after)
					res := call(t, inMemory(protocol2025)(t, s, nil), "near", nil)
					if texts(res)[0] != tt.text || res.IsError != (tt.code == 1) {
						t.Errorf("%v: %q, %v", after, texts(res), res.IsError)
					}
					o := outcome(res)
					if after == 9*time.Second {
						if o != nil {
							t.Errorf("with a tenth left: %v", o)
						}
						continue
					}
					if o["kind"] != "returned" || o["exitCode"] != tt.code || o["leftMs"] != 999.0 || o["totalMs"] != 10000.0 {
						t.Errorf("%v", o)
					}
				}
			})
		})
	}
	if shared.Meta != nil {
		t.Error("a result of the tool's was written to")
	}
}

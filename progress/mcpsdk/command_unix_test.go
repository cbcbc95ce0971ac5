//go:build unix

package mcpsdk_test

import (
	"context"
	"fmt"
	"github.com/benbjohnson/clock"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 6.8: the message and the output of a command that was stopped reach the client, however the tool
// is written.
func TestCommandsMessage(t *testing.T) {
	t.Parallel()
	const soon = 10 * time.Second // on a clock that stands still until the shell has said something
	type clockKey struct{}
	run := func(ctx context.Context, opts ...procgroup.Option) error {
		now := ctx.Value(clockKey{}).(*clock.Mock)
		said := sync.OnceFunc(func() { go now.Add(soon) })
		opts = append(opts, procgroup.WithOptions(timeout.WithName("TLC"), timeout.WithClock(now)), procgroup.WithOutput(func(procgroup.Chunk) { said() }))
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), opts...)
		return err
	}
	own := procgroup.WithLimits(timeout.Config{Total: soon})
	const text = "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"
	const wrote = "TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"
	for name, tt := range map[string]struct {
		add   func(*mcp.Server)
		total time.Duration
		want  string
	}{
		"raw": {func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "tlc", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, run(ctx, own)
			})
		}, 0, text},
		"raw, limit of the tool": {func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "tlc", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, run(ctx)
			})
		}, soon, text},
		"typed": {func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, run(ctx, own)
			})
		}, 0, text},
		"typed, limit of the tool": {func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, run(ctx)
			})
		}, soon, text},
		"typed, in words of the tool": {func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, fmt.Errorf("model.tla: %w", run(ctx, own))
			})
		}, 0, "model.tla: " + text},
		"raw, stopped for what it wrote": {func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "tlc", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, run(ctx, procgroup.WithOutputLimit(6))
			})
		}, time.Minute, wrote},
		"typed, stopped for what it wrote": {func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, run(ctx, procgroup.WithOutputLimit(6))
			})
		}, time.Minute, wrote},
		"typed, in words of the tool, stopped for what it wrote": {func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, fmt.Errorf("model.tla: %w", run(ctx, procgroup.WithOutputLimit(6)))
			})
		}, time.Minute, "model.tla: " + wrote},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			tt.add(s)
			now := clock.NewMock()
			mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Total: tt.total, Grace: time.Minute}}, mcpsdk.WithOptions(timeout.WithClock(now)))
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					return next(context.WithValue(ctx, clockKey{}, now), method, req)
				}
			})
			res := call(t, inMemory(protocol2025)(t, s, nil), "tlc", nil)
			kind, code, limit := "total", 124.0, 10000.0
			if strings.Contains(tt.want, wrote) {
				kind, code, limit = "too_much_output", 153, 0
			}
			got := outcome(res)
			if d := cmp.Diff([]string{tt.want}, texts(res)); d != "" || !res.IsError || got["kind"] != kind || got["exitCode"] != code || got["limitMs"] != limit {
				t.Errorf("%v %v (-want +got):\n%s", res.IsError, got, d)
			}
		})
	}
}

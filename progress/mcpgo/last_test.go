package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 7.7: whichever error the handler returned, the text has the newest detail. The package mcpsdk has
// the same table.
func TestLastOfEveryError(t *testing.T) {
	const (
		idle = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
		last = "\nlast: file 37 of 100"
	)
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, tt := range []struct {
		name string
		fail func(ctx context.Context) error
		want string
	}{
		{"ctx.Err", wait, idle + last},
		{"context.Cause", func(ctx context.Context) error { _ = wait(ctx); return context.Cause(ctx) }, idle + last},
		{"wrapped cause", func(ctx context.Context) error { _ = wait(ctx); return fmt.Errorf("%w, sadly", context.Cause(ctx)) }, idle + last},
		{"joined", func(ctx context.Context) error { return errors.Join(wait(ctx), errors.New("disk is full")) }, idle + last},
		{"nested Run", func(ctx context.Context) error {
			return timeout.Run(ctx, wait, timeout.Config{Total: time.Minute})
		}, idle + last},
		{"wrapped nested Run", func(ctx context.Context) error {
			return fmt.Errorf("search: %w", timeout.Run(ctx, wait, timeout.Config{Total: time.Minute}))
		}, idle + last},
		{"nested Run with a limit of its own", func(ctx context.Context) error {
			return timeout.Run(ctx, wait, timeout.Config{Total: time.Second})
		}, "Tool exceeded wall-clock limit of 1s." + last},
		{"wrapped nested Run with a limit of its own", func(ctx context.Context) error {
			return fmt.Errorf("search: %w", timeout.Run(ctx, wait, timeout.Config{Total: time.Second}))
		}, "search: Tool exceeded wall-clock limit of 1s." + last},
		{"Await", func(ctx context.Context) error {
			_, err := progress.Await(ctx, "rm -r build", func(ctx context.Context) (bool, error) { return false, wait(ctx) })
			return err
		}, progress.ErrNoAnswer.Error() + last},
		{"wrapped Await", func(ctx context.Context) error {
			_, err := progress.Await(ctx, "rm -r build", func(ctx context.Context) (bool, error) { return false, wait(ctx) })
			return fmt.Errorf("delete: %w", err)
		}, "delete: " + progress.ErrNoAnswer.Error() + last},
		{"Await that was cut short", func(ctx context.Context) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				_, err := progress.Await(hidden{ctx}, "rm -r build", func(ctx context.Context) (bool, error) { return false, wait(ctx) })
				return err
			}, timeout.Config{Total: 3 * time.Second})
		}, "Tool exceeded wall-clock limit of 3s.\n" + progress.ErrNoAnswer.Error() + "\nlast: Waiting for approval of rm -r build (3s so far, 27s left)"},
	} {
		tool := func(ctx context.Context) error {
			progress.Report(ctx, progress.Update{Message: "file", Progress: 37, Total: 100})
			return tt.fail(ctx)
		}
		p := &policy.Policy{Default: &timeout.Config{Idle: 5 * time.Second}}
		plain := func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, tool(ctx) }
		typed := mcp.NewTypedToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, error) {
			return nil, tool(ctx)
		})
		for form, s := range map[string]func(add func(server.ToolHandlerFunc), install func(*policy.Policy)){
			"plain": func(add func(server.ToolHandlerFunc), install func(*policy.Policy)) { install(p); add(plain) },
			"typed": func(add func(server.ToolHandlerFunc), install func(*policy.Policy)) { install(p); add(typed) },
			"SetResult": func(add func(server.ToolHandlerFunc), install func(*policy.Policy)) {
				install(p)
				add(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					err := tool(ctx)
					if ctx.Err() != nil {
						err = context.Cause(ctx)
					}
					res := new(mcp.CallToolResult)
					mcpgo.SetResult(res, err, "")
					return res, nil
				})
			},
			"Handler": func(add func(server.ToolHandlerFunc), install func(*policy.Policy)) {
				add(mcpgo.Handler(typed, mcpgo.WithPolicy(p)))
			},
			"Handler within Install": func(add func(server.ToolHandlerFunc), install func(*policy.Policy)) {
				install(nil)
				add(mcpgo.Handler(plain, mcpgo.WithPolicy(p)))
			},
		} {
			if form == "SetResult" && strings.HasSuffix(tt.name, "a limit of its own") {
				continue // the adapter does not see that error
			}
			t.Run(tt.name+"/"+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := server.NewMCPServer("test", "1")
					s(func(h server.ToolHandlerFunc) { srv.AddTool(mcp.NewTool("search"), h) }, func(p *policy.Policy) { mcpgo.Install(srv, p) })
					answer := srv.HandleMessage(context.Background(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}`))
					response, ok := answer.(mcp.JSONRPCResponse)
					if !ok {
						t.Fatalf("%+v", answer)
					}
					res := response.Result.(*mcp.CallToolResult)
					if d := cmp.Diff(tt.want, res.Content[0].(mcp.TextContent).Text); d != "" || !res.IsError {
						t.Errorf("isError %v\n%s", res.IsError, d)
					}
				})
			})
		}
	}
}

// hidden is a context that does not show its deadline.
type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

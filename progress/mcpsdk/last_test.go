package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 7.7: whichever error the handler returned, the text has the newest detail. The package mcpgo has
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
		typed := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, tool(ctx)
		}
		schema := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, found, error) {
			return nil, found{}, tool(ctx)
		}
		for form, add := range map[string]func(*mcp.Server){
			"raw": func(s *mcp.Server) {
				s.AddTool(&mcp.Tool{Name: "search", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return nil, tool(ctx)
				})
				mcpsdk.Install(s, p)
			},
			"SetError": func(s *mcp.Server) {
				s.AddTool(&mcp.Tool{Name: "search", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					res := new(mcp.CallToolResult)
					res.SetError(tool(ctx))
					return res, nil
				})
				mcpsdk.Install(s, p)
			},
			"SetResult": func(s *mcp.Server) {
				s.AddTool(&mcp.Tool{Name: "search", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					err := tool(ctx)
					if ctx.Err() != nil {
						err = context.Cause(ctx)
					}
					res := new(mcp.CallToolResult)
					mcpsdk.SetResult(res, err, "")
					return res, nil
				})
				mcpsdk.Install(s, p)
			},
			"typed": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, typed)
				mcpsdk.Install(s, p)
			},
			"typed with a schema": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, schema)
				mcpsdk.Install(s, p)
			},
			"Handler": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(typed, mcpsdk.WithPolicy(p)))
			},
			"Handler with a schema": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(schema, mcpsdk.WithPolicy(p)))
			},
			"Handler within Install": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(typed, mcpsdk.WithPolicy(p)))
				mcpsdk.Install(s, nil)
			},
			"Handler with a schema within Install": func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(schema, mcpsdk.WithPolicy(p)))
				mcpsdk.Install(s, nil)
			},
		} {
			t.Run(tt.name+"/"+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					add(s)
					res := call(t, inMemory(protocol2025)(t, s, nil), "search", nil)
					// The tool's own words may follow, in a content of their own or as part of the first one.
					if d := cmp.Diff(tt.want, strings.Replace(texts(res)[0], ", sadly", "", 1)); d != "" || !res.IsError {
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

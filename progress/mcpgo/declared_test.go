package mcpgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 10.2: the client of a server that declares its limits waits as long as the server does, and
// no longer.
func TestUseDeclared(t *testing.T) {
	const grace, margin = time.Second, time.Second
	for _, tt := range []struct {
		name      string
		ceiling   mcpgo.ClientLimits
		perMethod map[string]mcpgo.ClientLimits
		own       *mcpgo.ClientLimits
		unlisted  bool
		tool      string
		after     time.Duration // 0: the answer comes
		kind      timeout.Kind
	}{
		{name: "a tool that beats, beyond the default", tool: "beats"},
		{name: "an answer in the grace", tool: "late"},
		{name: "not listed, so the server's", unlisted: true, tool: "deaf", after: 20*time.Second + grace + margin, kind: timeout.KindIdle},
		{name: "idle", tool: "deaf", after: 3*time.Minute + grace + margin, kind: timeout.KindIdle},
		{name: "the ceiling", ceiling: mcpgo.ClientLimits{Timeout: time.Minute}, tool: "deaf", after: time.Minute, kind: timeout.KindIdle},
		{name: "the ceiling's cap", ceiling: mcpgo.ClientLimits{MaxTotal: 2 * time.Minute}, tool: "deaf", after: 2 * time.Minute, kind: timeout.KindTotal},
		{name: "the user's own", perMethod: map[string]mcpgo.ClientLimits{"tools/*": {Timeout: 7 * time.Second}}, tool: "deaf", after: 7 * time.Second, kind: timeout.KindIdle},
		{name: "the request's own", perMethod: map[string]mcpgo.ClientLimits{"tools/*": {Timeout: 7 * time.Second}},
			own: &mcpgo.ClientLimits{Timeout: 3 * time.Second}, tool: "deaf", after: 3 * time.Second, kind: timeout.KindIdle},
	} {
		for _, modern := range []bool{false, true} {
			name := tt.name + ", 2025"
			if modern {
				name = tt.name + ", 2026"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server.NewMCPServer("test", "1", server.WithExtensions(map[string]any{
						policy.DeclarationKey: policy.Declaration{Idle: 20 * time.Second, Grace: grace},
					}))
					deaf := mcp.NewTool("deaf")
					deaf.Meta = &mcp.Meta{AdditionalFields: map[string]any{policy.DeclarationKey: policy.Declaration{
						Idle: 3 * time.Minute, Total: time.Hour, Grace: grace, Progress: 10 * time.Second,
					}}}
					if tt.after == 0 { // otherwise it is a server that declares and does not keep its word
						mcpgo.Install(s, &policy.Policy{
							Default: &timeout.Config{Idle: 20 * time.Second, Grace: grace},
							Tools: map[string]policy.Tool{
								"beats": {Limits: &timeout.Config{Idle: 40 * time.Second, Grace: grace}},
								"late":  {Limits: &timeout.Config{Total: 2 * time.Minute, Grace: grace}},
							},
						}, mcpgo.WithDeclaredLimits())
					}
					s.AddTool(mcp.NewTool("beats"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						for range 20 {
							time.Sleep(30 * time.Second)
							progress.Report(ctx, progress.Update{})
						}
						return mcp.NewToolResultText("done"), nil
					})
					s.AddTool(mcp.NewTool("late"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						<-ctx.Done()
						time.Sleep(grace - 1)
						return mcp.NewToolResultText("done"), nil
					})
					s.AddTool(deaf, hang)
					c := connect(t, mcpgo.Limit(transport.NewInProcessTransport(s), mcpgo.ClientLimits{Timeout: 5 * time.Second},
						tt.perMethod, nil, mcpgo.UseDeclared(tt.ceiling)), modern)
					defer func() {
						_ = c.Close()
						time.Sleep(4 * time.Hour)
					}()
					if !tt.unlisted {
						if _, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}); err != nil {
							t.Fatal(err)
						}
					}
					ctx := t.Context()
					if tt.own != nil {
						ctx = mcpgo.WithLimits(ctx, *tt.own)
					}
					start := time.Now()
					_, err := c.CallTool(ctx, call{tool: tt.tool}.request())
					if tt.after == 0 {
						if err != nil {
							t.Errorf("%v after %v", err, time.Since(start))
						}
						return
					}
					if e := requestTimeout(t, err, "tools/call"); e.Kind != tt.kind || time.Since(start) != tt.after {
						t.Errorf("%v after %v, want %v after %v", e.Kind, time.Since(start), tt.kind, tt.after)
					}
				})
			})
		}
	}
}

// SPEC 10.3: what a server declares for a method holds for a client that has no other limits for it.
func TestDeclaredMethods(t *testing.T) {
	const margin = time.Second
	for _, tt := range []struct {
		name      string
		perMethod map[string]mcpgo.ClientLimits
		ceiling   mcpgo.ClientLimits
		after     time.Duration
	}{
		{"declared", nil, mcpgo.ClientLimits{}, 20*time.Second + margin},
		{"under the ceiling", nil, mcpgo.ClientLimits{MaxTotal: 9 * time.Second}, 9 * time.Second},
		{"the user's own", map[string]mcpgo.ClientLimits{"tools/*": {MaxTotal: 7 * time.Second}}, mcpgo.ClientLimits{}, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := server.NewMCPServer("test", "1", server.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
					<-ctx.Done()
					return tools
				}))
				s.AddTool(mcp.NewTool("hang"), hang)
				mcpgo.Install(s, nil, mcpgo.WithDeclaredMethods(map[string]policy.Declaration{"tools/list": {Total: 20 * time.Second}}))
				c := connect(t, mcpgo.Limit(transport.NewInProcessTransport(s), mcpgo.ClientLimits{Timeout: time.Hour},
					tt.perMethod, mcpgo.UseDeclared(tt.ceiling)), false)
				start := time.Now()
				_, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
				if requestTimeout(t, err, "tools/list"); time.Since(start) != tt.after {
					t.Errorf("after %v, want %v", time.Since(start), tt.after)
				}
			})
		})
	}
}

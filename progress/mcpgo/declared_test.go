package mcpgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func metaOf(t *testing.T, c *client.Client) map[string]map[string]any {
	t.Helper()
	res, err := c.ListTools(soon(t), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]map[string]any)
	for _, tool := range res.Tools {
		all[tool.Name] = map[string]any{}
		if tool.Meta != nil {
			all[tool.Name] = tool.Meta.AdditionalFields
		}
	}
	return all
}

// SPEC 10.1: what clients see of the limits, on every transport.
func TestWithDeclaredLimits(t *testing.T) {
	each(t, links, func(t *testing.T, l link) {
		env := map[string]string{}
		s := server.NewMCPServer("test", "1", server.WithExtensions(map[string]any{"other": map[string]any{}}))
		mcpgo.Install(s, &policy.Policy{
			Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
			Tools: map[string]policy.Tool{
				"explore": {Limits: &timeout.Config{Total: 10 * time.Minute}, Env: "EXPLORE"},
				"noop":    {Env: "NOOP"},
			},
			Lookup: func(key string) (string, bool) { v, ok := env[key]; return v, ok },
		}, mcpgo.WithDeclaredLimits())
		own := &mcp.Meta{AdditionalFields: map[string]any{"own": "kept"}}
		explore := mcp.NewTool("explore")
		explore.Meta = own
		for _, tool := range []mcp.Tool{explore, mcp.NewTool("noop"), mcp.NewTool("search")} {
			s.AddTool(tool, hang)
		}
		c := l.connect(t, s)

		fast := map[string]any{"totalMs": 60000.0, "idleMs": 30000.0, "graceMs": 7000.0, "progressMs": 10000.0}
		long := map[string]any{"totalMs": 600000.0, "idleMs": 0.0, "graceMs": 7000.0, "progressMs": 10000.0}
		want := map[string]any{"other": map[string]any{}, policy.DeclarationKey: fast}
		if d := cmp.Diff(want, c.GetServerCapabilities().Extensions); d != "" {
			t.Error("capabilities:", d)
		}
		all := metaOf(t, c)
		if d := cmp.Diff(map[string]any{"own": "kept", policy.DeclarationKey: long}, all["explore"]); d != "" {
			t.Error("explore:", d)
		}
		if d := cmp.Diff(map[string]any{policy.DeclarationKey: fast}, all["search"]); d != "" {
			t.Error("search:", d)
		}
		env["EXPLORE_TIMEOUT_MS"] = "1500"
		env["NOOP_TIMEOUT_MS"] = "soon"
		all = metaOf(t, c)
		long["totalMs"] = 1500.0
		if d := cmp.Diff(long, all["explore"][policy.DeclarationKey]); d != "" {
			t.Error("explore:", d)
		}
		if got, ok := all["noop"][policy.DeclarationKey]; ok {
			t.Errorf("limits that cannot be read: %v", got)
		}
		if len(own.AdditionalFields) != 1 {
			t.Errorf("the tool's own _meta has become %v", own)
		}
	})
}

// Without the option nothing is declared.
func TestNothingDeclared(t *testing.T) {
	c := dial(newServer(), plain)
	defer c.Close()
	for name, meta := range metaOf(t, c) {
		if len(meta) > 0 {
			t.Errorf("%s: %v", name, meta)
		}
	}
	if got := c.GetServerCapabilities().Extensions; len(got) > 0 {
		t.Error(got)
	}
}

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

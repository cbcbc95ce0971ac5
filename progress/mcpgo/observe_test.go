package mcpgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 3.18: a server whose policy only observes answers as if there were no limits.
func TestPolicyObserveOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		policy  policy.Policy
		observe bool
	}{
		{"enforced", policy.Policy{}, false},
		{"observed", policy.Policy{ObserveOnly: true}, true},
		{"one tool is", policy.Policy{Tools: map[string]policy.Tool{"silent": {ObserveOnly: true}}}, true},
		{"another tool is", policy.Policy{Tools: map[string]policy.Tool{"fast": {ObserveOnly: true}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			each(t, named("stdio 2025", "http 2026"), func(t *testing.T, l link) {
				p := &policy.Policy{ // a copy for each
					Default: &timeout.Config{Idle: 60 * ms, Total: time.Hour}, Tools: tc.policy.Tools, ObserveOnly: tc.policy.ObserveOnly,
					Lookup: func(string) (string, bool) { return "", false },
				}
				exceeded, ended := make(chan timeout.Kind, 9), make(chan timeout.Snapshot, 9)
				s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false))
				mcpgo.Install(s, p, mcpgo.WithOptions(timeout.WithHooks(timeout.Hooks{
					Exceeded: func(_ context.Context, s timeout.Snapshot) { exceeded <- s.Err.(*timeout.Error).Kind },
					Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s },
				})))
				s.AddTool(mcp.NewTool("silent"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-exceeded:
						if ctx.Err() != nil {
							return nil, ctx.Err()
						}
					}
					return mcp.NewToolResultText("done"), nil
				})
				res, err := l.connect(t, s).CallTool(soon(t), call{tool: "silent"}.request())
				if err != nil {
					t.Fatal(err)
				}
				want := stopped("idle", "60 3.6e+06 60", msgIdle)
				if tc.observe {
					want = result{Texts: []string{"done"}}
				}
				if diff := cmp.Diff(want, view(t, res)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if f := <-ended; f.ObserveOnly != tc.observe || (f.Observed != nil) != tc.observe || tc.observe && f.Observed.Kind != timeout.KindIdle {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

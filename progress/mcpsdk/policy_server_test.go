package mcpsdk_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 2.6, 2.7, 2.8: the limits of a call by the tool's name, the environment and the request.
func TestLimitsOfACall(t *testing.T) {
	reference := func(env map[string]string) *policy.Policy {
		return &policy.Policy{
			Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
			Tools: map[string]policy.Tool{
				"tlc_check":   {Limits: &timeout.Config{Idle: 2 * time.Minute}},
				"tlc_smoke":   {Limits: &timeout.Config{Total: 120 * time.Second}, Env: "TLC_SMOKE"},
				"tlc_explore": {Limits: &timeout.Config{Total: 600 * time.Second}, Env: "TLC_EXPLORE", MaxTotal: time.Hour},
			},
			Lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		}
	}
	meta, args := []mcpsdk.InstallOption{mcpsdk.WithMetaTimeout()}, []mcpsdk.InstallOption{mcpsdk.WithArgumentTimeout()}
	both := append(append([]mcpsdk.InstallOption{}, args...), meta...)
	const accepted = ": want milliseconds as a whole number from 1 to 9223372036854, such as 120000"
	for _, tt := range []struct {
		name, tool string
		env        map[string]string
		opts       []mcpsdk.InstallOption
		meta, args any
		want       timeout.Config
		refused    string
	}{
		{name: "default", tool: "other", want: timeout.FastTools()},
		{name: "no total", tool: "tlc_check", want: timeout.UnboundedTotal()},
		{name: "smoke", tool: "tlc_smoke", want: timeout.Config{Total: 2 * time.Minute}},
		{name: "explore", tool: "tlc_explore", want: timeout.Config{Total: 10 * time.Minute}},
		{name: "environment", tool: "tlc_smoke", env: map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1500"}, want: timeout.Config{Total: 1500 * time.Millisecond}},
		{name: "bad environment", tool: "tlc_smoke", env: map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1.5s"},
			refused: `timeout: TLC_SMOKE_TIMEOUT_MS="1.5s": want milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000`},
		{name: "requests have no say", tool: "tlc_explore", meta: 5, args: 5, want: timeout.Config{Total: 10 * time.Minute}},
		{name: "in _meta", tool: "tlc_explore", opts: meta, meta: 5000, args: "x", want: timeout.Config{Total: 5 * time.Second}},
		{name: "in the arguments", tool: "tlc_explore", opts: args, meta: "x", args: 5000, want: timeout.Config{Total: 5 * time.Second}},
		{name: "in both", tool: "tlc_explore", opts: both, meta: 5000, args: 7000, want: timeout.Config{Total: 5 * time.Second}},
		{name: "in the arguments, not in _meta", tool: "tlc_explore", opts: both, args: 7000, want: timeout.Config{Total: 7 * time.Second}},
		{name: "before the environment", tool: "tlc_smoke", opts: meta, meta: 5000, env: map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1500"}, want: timeout.Config{Total: 5 * time.Second}},
		{name: "clamped", tool: "tlc_explore", opts: meta, meta: 1e9, want: timeout.Config{Total: time.Hour}},
		{name: "not clamped", tool: "tlc_explore", opts: meta, meta: 3.6e6, want: timeout.Config{Total: time.Hour}},
		{name: "zero", tool: "tlc_explore", opts: meta, meta: 0, refused: `timeout: timeoutMs="0"` + accepted},
		{name: "negative", tool: "tlc_explore", opts: args, args: -5, refused: `timeout: timeoutMs="-5"` + accepted},
		{name: "text", tool: "tlc_explore", opts: args, args: "5s", refused: `timeout: timeoutMs="\"5s\""` + accepted},
		{name: "fraction", tool: "tlc_explore", opts: meta, meta: 1.5, refused: `timeout: timeoutMs="1.5"` + accepted},
		{name: "null", tool: "tlc_explore", opts: both, meta: nil, args: nil, want: timeout.Config{Total: 10 * time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				called := false
				s.AddTool(&mcp.Tool{Name: tt.tool, InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					called = true
					return textResult("done"), nil
				})
				var got timeout.Config
				started := mcpsdk.WithOptions(timeout.WithHooks(timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) { got = s.Limits }}))
				mcpsdk.Install(s, reference(tt.env), append(tt.opts, started)...)
				cs := inMemory(protocol2025)(t, s, nil)
				p := &mcp.CallToolParams{Name: tt.tool, Arguments: map[string]any{"timeoutMs": tt.args, "TIMEOUTMS": 3}, Meta: mcp.Meta{"timeoutMs": tt.meta}}
				res, err := cs.CallTool(context.Background(), p)
				if err != nil {
					t.Fatal(err)
				}
				if tt.refused != "" {
					if d := cmp.Diff([]string{tt.refused}, texts(res)); d != "" || !res.IsError || called {
						t.Error(res.IsError, called, d)
					}
					return
				}
				tt.want.Grace = timeout.DefaultGrace
				if d := cmp.Diff(tt.want, got); d != "" || res.IsError || !called {
					t.Error(res.IsError, called, d)
				}
			})
		})
	}
}

// An argument that the schema declares is not taken away.
func TestDeclaredTimeoutArgument(t *testing.T) {
	type input struct {
		Path      string `json:"path"`
		TimeoutMs int    `json:"timeoutMs,omitempty"`
	}
	s := newServer()
	mcp.AddTool(s, &mcp.Tool{Name: "typed"}, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		deadline, ok := ctx.Deadline()
		left := time.Until(deadline)
		return textResult(fmt.Sprint(in.TimeoutMs, ok && left <= time.Minute && left > time.Minute-slack)), nil, nil
	})
	mcpsdk.Install(s, nil, mcpsdk.WithArgumentTimeout())
	cs := inMemory(protocol2025)(t, s, nil)
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "typed", Arguments: input{"x", 60000}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"60000 true"}, texts(res)); d != "" {
		t.Error(d)
	}
}

// Where both fire at once, the message is there once.
func TestHandlerUnderTheSamePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := &policy.Policy{Default: &timeout.Config{Total: time.Minute}}
		mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, mcpsdk.WithPolicy(p)))
		mcpsdk.Install(s, p)
		res, err := inMemory(protocol2025)(t, s, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: query{"content"}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"Tool exceeded wall-clock limit of 60s.", "found two files"}, texts(res)); d != "" || outcome(res)["exitCode"] != 124.0 {
			t.Error(d, outcome(res))
		}
	})
}

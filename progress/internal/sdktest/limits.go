package sdktest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// limits tests SPEC 2.6, 2.7, 2.8: the limits of a call follow from the tool's name, the environment and the request.
// The tests of package policy cover the rest.
func limits(t *testing.T, sdk SDK) {
	reference := func(env map[string]string) *policy.Policy {
		return &policy.Policy{
			Default: &timeout.Config{Total: time.Minute, Idle: 30 * s},
			Tools: map[string]policy.Tool{
				"tlc_check":   {Limits: &timeout.Config{Idle: 2 * time.Minute}},
				"tlc_smoke":   {Limits: &timeout.Config{Total: 120 * s}, Env: "TLC_SMOKE"},
				"tlc_explore": {Limits: &timeout.Config{Total: 600 * s}, Env: "TLC_EXPLORE", MaxTotal: time.Hour},
			},
			Lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		}
	}
	const (
		none, meta, args, both = 0, 1, 2, 3
		accepted               = ": want milliseconds as a whole number from 1 to 9223372036854, such as 120000"
	)
	for _, tc := range []struct {
		name, tool string
		env        map[string]string
		say        int
		meta, args any
		want       timeout.Config
		refused    string
	}{
		{name: "default", tool: "other", want: timeout.FastTools()},
		{name: "explore", tool: "tlc_explore", want: timeout.Config{Total: 10 * time.Minute}},
		{name: "environment", tool: "tlc_smoke", env: map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1500"}, want: timeout.Config{Total: 1500 * ms}},
		{name: "bad environment", tool: "tlc_smoke", env: map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1.5s"},
			refused: `timeout: TLC_SMOKE_TIMEOUT_MS="1.5s": want milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000`},
		{name: "requests have no say", tool: "tlc_explore", meta: 5, args: 5, want: timeout.Config{Total: 10 * time.Minute}},
		{name: "in _meta", tool: "tlc_explore", say: meta, meta: 5000, args: "x", want: timeout.Config{Total: 5 * s}},
		{name: "in the arguments", tool: "tlc_explore", say: args, meta: "x", args: 5000, want: timeout.Config{Total: 5 * s}},
		{name: "in the arguments, not in _meta", tool: "tlc_explore", say: both, args: 7000, want: timeout.Config{Total: 7 * s}},
		{name: "clamped", tool: "tlc_explore", say: meta, meta: 1e9, want: timeout.Config{Total: time.Hour}},
		{name: "zero", tool: "tlc_explore", say: meta, meta: 0, refused: `timeout: timeoutMs="0"` + accepted},
		{name: "text", tool: "tlc_explore", say: args, args: "5s", refused: `timeout: timeoutMs="5s"` + accepted},
		{name: "null", tool: "tlc_explore", say: both, meta: json.RawMessage("null"), args: json.RawMessage("null"), want: timeout.Config{Total: 10 * time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got timeout.Config
			var called bool
			over(t, sdk, func() Config {
				got, called = timeout.Config{}, false
				started := timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) { got = s.Limits }}
				return Config{Policy: reference(tc.env), Hooks: started, Meta: tc.say&meta != none, Arguments: tc.say&args != none,
					Tools: map[string]Tool{tc.tool: {Run: func(context.Context, *Call) (*Result, error) { called = true; return Text("done"), nil }}}}
			}, func(t *testing.T, p *Peer) {
				more := object{"arguments": object{"TIMEOUTMS": 3}, "_meta": object{}}
				if tc.args != nil {
					more["arguments"].(object)["timeoutMs"] = tc.args
				}
				if tc.meta != nil {
					more["_meta"] = object{"timeoutMs": tc.meta}
				}
				m := p.call(tc.tool, nil, more).wait()
				if tc.refused != "" {
					text := strings.ReplaceAll(texts(m.Result)[0], `\"`, "") // only some SDKs quote a text
					if d := cmp.Diff(tc.refused, text); d != "" || m.Result["isError"] != true || called {
						t.Errorf("called %v, %s", called, d)
					}
					return
				}
				want := tc.want
				want.Grace = timeout.DefaultGrace
				if d := cmp.Diff(want, got); d != "" || !called || m.Result["isError"] == true {
					t.Errorf("called %v, %s", called, d)
				}
			}, "lines", "HTTP "+New)
		})
	}
}

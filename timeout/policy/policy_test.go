package policy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func env(vars map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		v, ok := vars[key]
		return v, ok
	}
}

func limits(c timeout.Config) *timeout.Config { return &c }

// textLog returns a logger that writes to log, without the time.
func textLog(log *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// tlaPolicy is the reference policy, SPEC 2.8.
func tlaPolicy(vars map[string]string) *policy.Policy {
	return &policy.Policy{
		Default: limits(timeout.Default()),
		Tools: map[string]policy.Tool{
			"tlc_check":   {Limits: limits(timeout.UnboundedTotal())},
			"tlc_smoke":   {Limits: &timeout.Config{Total: 120000 * time.Millisecond, Idle: 120 * time.Second}, Env: "TLC_SMOKE"},
			"tlc_explore": {Limits: &timeout.Config{Total: 600000 * time.Millisecond, Idle: 120 * time.Second}, Env: "TLC_EXPLORE_TIMEOUT_MS", MaxTotal: time.Hour},
		},
		Lookup: env(vars),
	}
}

const (
	totalDoubt = `MCP_TIMEOUT=120000 is in seconds, so it means 33.3 hours; in milliseconds it would be 2m0s: for that, set MCP_TIMEOUT=120`
	idleDoubt  = `MCP_IDLE_TIMEOUT=10000 is in seconds, so it means 2.8 hours; in milliseconds it would be 10s: for that, set MCP_IDLE_TIMEOUT=10`
	softDoubt  = `the tool's soft limit is not below its total; no call becomes a task`
)

// SPEC 2.2, 2.3, 2.6, 2.7, 2.13: what a policy makes of its fields, the environment and a request, and what it warns of: what
// the configuration gets wrong, and not what a request cuts. Run has nothing left to warn of.
func TestResolve(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	hour, zero := timeout.Config{Total: time.Hour}, timeout.Config{}
	tool := func(t policy.Tool) map[string]policy.Tool { return map[string]policy.Tool{"a": t} }
	own := map[string]string{"MCP_TIMEOUT": "50", "MCP_IDLE_TIMEOUT": "5", "TLA_TIMEOUT": "70", "TLA_IDLE_TIMEOUT": "7", "-": "soon"}
	fast := limits(timeout.FastTools())
	soft := func(soft, total time.Duration) policy.Policy {
		return policy.Policy{Tools: tool(policy.Tool{Limits: &timeout.Config{Total: total}, Soft: soft})}
	}
	for name, tc := range map[string]struct {
		policy  policy.Policy
		vars    map[string]string
		request time.Duration
		want    timeout.Config
		warns   []string
	}{
		"the process default":                {want: timeout.Default()},
		"default":                            {policy: policy.Policy{Default: &hour}, want: hour},
		"zero default":                       {policy: policy.Policy{Default: &zero}},
		"no limits of the tool":              {policy: policy.Policy{Default: &hour, Tools: tool(policy.Tool{})}, want: hour},
		"neither":                            {policy: policy.Policy{Tools: tool(policy.Tool{})}, want: timeout.Default()},
		"zero default, no limits":            {policy: policy.Policy{Default: &zero, Tools: tool(policy.Tool{})}},
		"zero limits of the tool":            {policy: policy.Policy{Default: &hour, Tools: tool(policy.Tool{Limits: &zero})}},
		"a variable and no limits":           {policy: policy.Policy{Default: fast, Tools: tool(policy.Tool{Env: "X"})}, vars: map[string]string{"X_TIMEOUT_MS": "45000"}, want: timeout.Config{Total: 45 * s, Idle: 30 * s}},
		"a ceiling and no limits":            {policy: policy.Policy{Default: fast, Tools: tool(policy.Tool{MaxTotal: 30 * s})}, want: timeout.FastTools()},
		"a request above a ceiling":          {policy: policy.Policy{Default: fast, Tools: tool(policy.Tool{MaxTotal: 40 * s})}, request: time.Hour, want: timeout.Config{Total: 40 * s, Idle: 30 * s}, warns: []string{"requested timeout exceeds the tool's ceiling; using the ceiling\" tool=a requested=1h0m0s ceiling=40s"}},
		"a request at it":                    {policy: policy.Policy{Default: fast, Tools: tool(policy.Tool{MaxTotal: 40 * s})}, request: 40 * s, want: timeout.Config{Total: 40 * s, Idle: 30 * s}},
		"a negative ceiling":                 {policy: policy.Policy{Default: fast, Tools: tool(policy.Tool{MaxTotal: -1})}, request: time.Hour, want: timeout.Config{Total: time.Hour, Idle: 30 * s}, warns: []string{"the tool's ceiling is negative; using none\" tool=a ceiling=-1ns"}},
		"a request at the idle limit":        {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: 20 * ms}}, request: 20 * ms, want: timeout.Config{Total: 20 * ms, Idle: 20 * ms}},
		"a request below it":                 {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: 20 * ms}}, request: 20*ms - 1, want: timeout.Config{Total: 20*ms - 1, Idle: 20*ms - 1}},
		"a request that gives it room":       {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: 80 * ms}}, request: 90 * ms, want: timeout.Config{Total: 90 * ms, Idle: 80 * ms}},
		"a negative idle limit":              {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: -1}}, request: 5 * ms, want: timeout.Config{Total: 5 * ms}, warns: []string{"idle timeout -1ns is negative; using 0 (no idle check)\" tool=a"}},
		"an idle limit above the total":      {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: 80 * ms}}, want: timeout.Config{Total: 60 * ms, Idle: 60 * ms}, warns: []string{"idle timeout 80ms exceeds total timeout 60ms; using 60ms\" tool=a"}},
		"a variable below the idle limit":    {policy: policy.Policy{Default: &timeout.Config{Total: 60 * ms, Idle: 20 * ms}}, vars: map[string]string{"MCP_TIMEOUT": "0.01"}, want: timeout.Config{Total: 10 * ms, Idle: 10 * ms}, warns: []string{"idle timeout 20ms exceeds total timeout 10ms; using 10ms\" tool=a"}},
		"the usual variables":                {policy: policy.Policy{Default: fast}, vars: own, want: timeout.Config{Total: 50 * s, Idle: 5 * s}},
		"other variables":                    {policy: policy.Policy{Default: fast, TotalEnv: "TLA_TIMEOUT", IdleEnv: "TLA_IDLE_TIMEOUT"}, vars: own, want: timeout.Config{Total: 70 * s, Idle: 7 * s}},
		"one other variable":                 {policy: policy.Policy{Default: fast, TotalEnv: "TLA_TIMEOUT"}, vars: own, want: timeout.Config{Total: 70 * s, Idle: 5 * s}},
		"no variable for one":                {policy: policy.Policy{Default: fast, IdleEnv: "-"}, vars: own, want: timeout.Config{Total: 50 * s, Idle: 30 * s}},
		"variables that are not set":         {policy: policy.Policy{Default: fast, TotalEnv: "UNSET", IdleEnv: "UNSET"}, vars: own, want: timeout.FastTools()},
		"just not doubtful":                  {vars: map[string]string{"MCP_TIMEOUT": "9999.999999999", "MCP_IDLE_TIMEOUT": "9999.999999999"}, want: timeout.Config{Total: 10_000*s - 1, Idle: 10_000*s - 1}},
		"both doubtful":                      {vars: map[string]string{"MCP_TIMEOUT": "120000", "MCP_IDLE_TIMEOUT": "10000"}, want: timeout.Config{Total: 120_000 * s, Idle: 10_000 * s}, warns: []string{totalDoubt + "\" tool=a", idleDoubt + "\" tool=a"}},
		"another variable is not doubted":    {policy: policy.Policy{TotalEnv: "T", IdleEnv: "I"}, vars: map[string]string{"T": "120000", "I": "10000"}, want: timeout.Config{Total: 120_000 * s, Idle: 10_000 * s}},
		"nor the program":                    {policy: policy.Policy{Default: &timeout.Config{Total: 120_000 * s}}, want: timeout.Config{Total: 120_000 * s}},
		"soft below the total":               {policy: soft(s-1, s), want: timeout.Config{Total: s}},
		"soft at the total":                  {policy: soft(s, s), want: timeout.Config{Total: s}, warns: []string{softDoubt}},
		"soft without a total":               {policy: soft(s, 0)},
		"soft at once":                       {policy: soft(-1, s), want: timeout.Config{Total: s}},
		"soft that a request makes too long": {policy: soft(30*s, 60*s), request: s, want: timeout.Config{Total: s}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := tc.policy
			p.Lookup, p.Logger = env(tc.vars), textLog(&log)
			got, err := p.Resolve("a", tc.request)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if err := timeout.Run(t.Context(), func(context.Context) error { return nil }, got, timeout.WithLogger(p.Logger)); err != nil {
				t.Error(err)
			}
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(tc.warns) {
				t.Fatalf("log %q, want %q", lines, tc.warns)
			}
			for i, want := range tc.warns {
				if !strings.HasPrefix(lines[i], `level=WARN msg="`+want) {
					t.Errorf("log %s, want %s", lines[i], want)
				}
			}
		})
	}
}

// SPEC 2.9, 3.19: settings that cannot be read are an error that names key, value, tool and what is accepted, and the
// function is not called.
func TestResolveRefuses(t *testing.T) {
	const millis = "milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000"
	for _, tc := range []struct {
		vars             map[string]string
		request          time.Duration
		key, value, want string
	}{
		{map[string]string{"TLC_SMOKE_TIMEOUT_MS": "1.5"}, 0, "TLC_SMOKE_TIMEOUT_MS", "1.5", millis},
		{map[string]string{"TLC_SMOKE_TIMEOUT_MS": "soon"}, time.Second, "TLC_SMOKE_TIMEOUT_MS", "soon", millis},
		{map[string]string{"TLC_SMOKE_TIMEOUT_MS": "9223372036855"}, 0, "TLC_SMOKE_TIMEOUT_MS", "9223372036855", millis},
		{nil, -1500 * time.Microsecond, "timeoutMs", "-1.5", "a positive whole number of milliseconds"},
		{nil, -1, "timeoutMs", "-0.000001", "a positive whole number of milliseconds"},
		{map[string]string{"MCP_TIMEOUT": "soon"}, 0, "MCP_TIMEOUT", "soon", ""},
		{map[string]string{"MCP_TIMEOUT": "soon", "MCP_IDLE_TIMEOUT": "never"}, 0, "MCP_TIMEOUT", "soon", ""},
	} {
		t.Run(tc.key+"="+tc.value, func(t *testing.T) {
			p := tlaPolicy(tc.vars)
			c, err := p.Resolve("tlc_smoke", tc.request)
			bad, ok := err.(*timeout.ConfigError)
			if !ok || bad.Key != tc.key || bad.Value != tc.value || tc.want != "" && bad.Accepted != tc.want || bad.Tool != "tlc_smoke" || c != (timeout.Config{}) {
				t.Errorf("%v, %#v", c, err)
			}
			called := false
			got := timeout.Run(t.Context(), func(context.Context) error { called = true; return nil }, p.For("tlc_smoke", tc.request)...)
			if called || got == nil || got.Error() != err.Error() {
				t.Errorf("called %v, with %v", called, got)
			}
		})
	}
}

// SPEC 3.18: what For returns has each part, and options that come after it replace them. A policy observes every tool, or
// one. A nil policy has the process default, and still names the tool.
func TestFor(t *testing.T) {
	second := &timeout.Config{Total: time.Second}
	one := map[string]policy.Tool{"a": {ObserveOnly: true}}
	for name, tc := range map[string]struct {
		policy   *policy.Policy
		tool     string
		request  time.Duration
		opts     []timeout.Option
		total    time.Duration
		observed bool
	}{
		"environment":             {tlaPolicy(map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000", "MCP_IDLE_TIMEOUT": "0"}), "tlc_smoke", 0, nil, 90 * time.Second, false},
		"request":                 {tlaPolicy(nil), "tlc_smoke", time.Minute, nil, time.Minute, false},
		"an option":               {tlaPolicy(nil), "tlc_smoke", time.Minute, []timeout.Option{nil, *second}, time.Second, false},
		"no policy":               {nil, "search", time.Second, nil, time.Second, false},
		"all are observed":        {&policy.Policy{Default: second, ObserveOnly: true, Tools: map[string]policy.Tool{"a": {Limits: second}}}, "a", 0, nil, time.Second, true},
		"one is observed":         {&policy.Policy{Default: second, Tools: one}, "a", 0, nil, time.Second, true},
		"another is not":          {&policy.Policy{Default: second, Tools: one}, "b", 0, nil, time.Second, false},
		"observed, as all others": {&policy.Policy{Default: second, ObserveOnly: true}, "c", 0, nil, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				if tc.policy != nil {
					tc.policy.Logger = textLog(&log)
				}
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					return nil
				}, append(tc.policy.For(tc.tool, tc.request), tc.opts...)...)
				var e *timeout.Error
				if errors.As(err, &e) == tc.observed || e != nil && (e.Kind != timeout.ErrTotal || e.Limit != tc.total || e.Tool != tc.tool) {
					t.Errorf("%+v", err)
				}
				if tc.policy.Observes(tc.tool) != tc.observed {
					t.Errorf("Observes: %v", !tc.observed)
				}
				if n := strings.Count(log.String(), `msg="tool timed out"`); (n == 1) == tc.observed && tc.policy != nil {
					t.Errorf("the policy's log:\n%s", log.String())
				}
			})
		})
	}
}

// SPEC 2.7: each doubtful value is logged once, to the first who listens, and not for every request.
func TestDoubtIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	vars := map[string]string{"MCP_TIMEOUT": "4294967296"} // which is 0 in 32 bits
	p := &policy.Policy{Lookup: env(vars)}
	_, _ = p.Resolve("a", 0) // nobody listens
	p.Logger = textLog(&log)
	for _, step := range []struct{ key, value string }{{"MCP_TIMEOUT", "4294967296"}, {"MCP_TIMEOUT", "120000"}, {"MCP_IDLE_TIMEOUT", "10000"}} {
		vars[step.key] = step.value
		for range 3 {
			_, _ = p.Resolve("a", time.Second)
			_ = timeout.Run(t.Context(), func(context.Context) error { return nil }, p.For("b", 0)...)
		}
		if n := strings.Count(log.String(), step.key+"="+step.value+" is in seconds"); n != 1 {
			t.Errorf("%s=%s: logged %d times:\n%s", step.key, step.value, n, log.String())
		}
	}
}

// SPEC 11.1: never, at once, later, and as a task only can all be said.
func TestPolicySoft(t *testing.T) {
	p := &policy.Policy{Tools: map[string]policy.Tool{
		"never": {}, "later": {Soft: time.Minute}, "at once": {Soft: -time.Hour},
		"only": {TaskOnly: true}, "only later": {Soft: time.Minute, TaskOnly: true},
	}}
	for tool, want := range map[string]struct {
		soft time.Duration
		only bool
	}{"never": {}, "unknown": {}, "later": {time.Minute, false}, "at once": {-1, false}, "only": {-1, true}, "only later": {time.Minute, true}} {
		if soft, only := p.Soft(tool); soft != want.soft || only != want.only {
			t.Errorf("%s: %v, %v", tool, soft, only)
		}
	}
	if soft, only := (*policy.Policy)(nil).Soft("x"); soft != 0 || only {
		t.Errorf("nil: %v, %v", soft, only)
	}
}

// FuzzToolEnv compares with big integers: milliseconds that are accepted are exact.
func FuzzToolEnv(f *testing.F) {
	for _, s := range []string{"", " ", "abc", "NaN", "+Inf", "1e3", "0x10", "1_000", "1,5", "+5", "--5", "10s", "120 ", "120\x00", "0", "120000", "-5", "9223372036854", "9223372036855"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := policy.Policy{
			Tools:  map[string]policy.Tool{"x": {Env: "X"}},
			Lookup: env(map[string]string{"X_TIMEOUT_MS": s}),
		}
		got, err := p.Resolve("x", 0)
		exact, ok := new(big.Int).SetString(s, 10)
		if !ok || strings.HasPrefix(s, "+") {
			if err == nil {
				t.Fatalf("%q: %v", s, got.Total)
			}
			return
		}
		exact.Mul(exact, big.NewInt(1e6))
		if fits := exact.IsInt64(); fits != (err == nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && max(exact.Int64(), 0) != int64(got.Total) {
			t.Fatalf("%q: %d ns, want %s", s, got.Total, exact)
		}
	})
}

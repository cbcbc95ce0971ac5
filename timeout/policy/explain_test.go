package policy_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 2.6, 2.7, 2.8, 2.14: each limit, and where it comes from. Resolve has the same limits.
func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		name    string
		tool    string
		request time.Duration
		vars    map[string]string
		change  func(*policy.Policy)
		want    string
	}{
		{"default", "other", 0, nil, nil, "timeout 30m0s (default), idle_timeout 2m0s (default), grace 7s (default)"},
		{"off", "tlc_check", 0, nil, nil, "timeout off (tool), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"the variable switches off", "tlc_smoke", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "0"}, nil, "timeout off (TLC_SMOKE_TIMEOUT_MS), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"negative", "tlc_smoke", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "-1"}, nil, "timeout off (TLC_SMOKE_TIMEOUT_MS), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"variable given in full", "tlc_explore", 0, map[string]string{"TLC_EXPLORE_TIMEOUT_MS": "700000", "TLC_SMOKE_TIMEOUT_MS": "90000"}, nil, "timeout 11m40s (TLC_EXPLORE_TIMEOUT_MS), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"another tool's variable", "tlc_explore", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000"}, nil, "timeout 10m0s (tool), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"request without a total", "tlc_check", time.Hour, nil, nil, "timeout 1h0m0s (request), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"its own variable", "tlc_smoke", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "180000", "MCP_TIMEOUT": "5"}, nil, "timeout 3m0s (TLC_SMOKE_TIMEOUT_MS), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"everybody's variables", "tlc_smoke", 0, map[string]string{"MCP_TIMEOUT": "500", "MCP_IDLE_TIMEOUT": "0"}, nil, "timeout 8m20s (MCP_TIMEOUT), idle_timeout off (MCP_IDLE_TIMEOUT), grace 7s (default)"},
		{"request", "tlc_explore", time.Hour, map[string]string{"MCP_TIMEOUT": "500"}, nil, "timeout 1h0m0s (request), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"request above the ceiling", "tlc_explore", time.Hour + 1, nil, nil, "timeout 1h0m0s (request, cut to max_timeout), idle_timeout 2m0s (tool), grace 7s (default)"},
		{"request below the idle limit", "tlc_explore", time.Second, nil, nil, "timeout 1s (request), idle_timeout 1s (tool, cut to the timeout), grace 7s (default)"},
		{"variable below the idle limit", "other", 0, map[string]string{"MCP_TIMEOUT": "60"}, nil, "timeout 1m0s (MCP_TIMEOUT), idle_timeout 1m0s (default, cut to the timeout), grace 7s (default)"},
		{"grace of the default, and soft", "build", 0, nil, func(p *policy.Policy) {
			p.Default = &timeout.Config{Grace: -1}
			p.Tools["build"] = policy.Tool{Soft: 45 * time.Second}
		}, "timeout off (default), idle_timeout off (default), grace none (default), soft 45s (tool)"},
		{"grace of the tool, task at once, observed", "build", 0, nil, func(p *policy.Policy) {
			p.Tools["build"] = policy.Tool{Limits: &timeout.Config{Grace: time.Second}, TaskOnly: true, ObserveOnly: true}
		}, "timeout off (tool), idle_timeout off (tool), grace 1s (tool), soft at once (tool), not enforced"},
		{"reserve of the default", "build", 0, nil, func(p *policy.Policy) {
			p.Default = &timeout.Config{Total: time.Minute, Reserve: 20 * time.Second}
		}, "timeout 1m0s (default), idle_timeout off (default), grace 7s (default), reserve 20s (default)"},
		{"reserve of the tool, just below the request", "build", 20*time.Second + 1, nil, func(p *policy.Policy) {
			p.Tools["build"] = policy.Tool{Limits: &timeout.Config{Total: time.Minute, Reserve: 20 * time.Second}}
		}, "timeout 20.000000001s (request), idle_timeout off (tool), grace 7s (default), reserve 20s (tool)"},
		{"reserve of the tool, not below the request", "build", 20 * time.Second, nil, func(p *policy.Policy) {
			p.Tools["build"] = policy.Tool{Limits: &timeout.Config{Total: time.Minute, Reserve: 20 * time.Second}}
		}, "timeout 20s (request), idle_timeout off (tool), grace 7s (default), reserve 10s (tool, cut to half the timeout)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			p := tlaPolicy(tc.vars)
			p.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if tc.change != nil {
				tc.change(p)
			}
			if got, err := p.Explain(tc.tool, tc.request); got != tc.want || err != nil {
				t.Errorf("%s, %v, want\n%s", got, err, tc.want)
			}
			if log.Len() > 0 {
				t.Errorf("it logs %s", &log)
			}
			shown := func(d time.Duration) string {
				if d == 0 {
					return "off"
				}
				return d.String()
			}
			c, err := p.Resolve(tc.tool, tc.request)
			if err != nil || !strings.HasPrefix(tc.want, "timeout "+shown(c.Total)+" (") || !strings.Contains(tc.want, ", idle_timeout "+shown(c.Idle)+" (") {
				t.Errorf("resolved: %+v, %v", c, err)
			}
		})
	}
	if got, err := (*policy.Policy)(nil).Explain("x", 0); got == "" || err != nil {
		t.Errorf("of no policy: %s, %v", got, err)
	}
	var bad *timeout.ConfigError
	if got, err := tlaPolicy(map[string]string{"MCP_TIMEOUT": "soon"}).Explain("x", 0); got != "" || !errors.As(err, &bad) || bad.Key != "MCP_TIMEOUT" {
		t.Errorf("%s, %v", got, err)
	}
}

// SPEC 2.14: a value that a text leaves to the default comes from there, also after another text, and after
// Replace.
func TestExplainInherited(t *testing.T) {
	explain := func(p *policy.Policy, want string) {
		t.Helper()
		if got, err := p.Explain("build", 0); got != want || err != nil {
			t.Errorf("%s, %v, want\n%s", got, err, want)
		}
	}
	timeout.SetDefault(timeout.Default())
	p := &policy.Policy{Lookup: env(nil)}
	read := func(text string) {
		t.Helper()
		if err := p.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	read(`{"idle_timeout": 60, "reserve": 5, "tools": {"build": {"timeout": 600}}}`)
	explain(p, "timeout 10m0s (tool), idle_timeout 1m0s (default), grace 7s (default), reserve 5s (default)")
	replaced := &policy.Policy{Lookup: env(nil)}
	replaced.Replace(p)
	explain(replaced, "timeout 10m0s (tool), idle_timeout 1m0s (default), grace 7s (default), reserve 5s (default)")
	read(`{"tools": {"build": {"grace": 2}}}`)
	explain(p, "timeout 10m0s (tool), idle_timeout 1m0s (default), grace 2s (tool), reserve 5s (default)")
	p.Tools["build"].Limits.Idle = time.Second // by the program
	explain(p, "timeout 10m0s (tool), idle_timeout 1s (tool), grace 2s (tool), reserve 5s (default)")
	p.Tools["build"] = policy.Tool{Limits: &timeout.Config{Total: 600 * time.Second, Idle: time.Minute}}
	explain(p, "timeout 10m0s (tool), idle_timeout 1m0s (tool), grace 7s (default)")
	read(`{"tools": {"build": {"reserve": 2}}}`)
	explain(p, "timeout 10m0s (tool), idle_timeout 1m0s (tool), grace 7s (default), reserve 2s (tool)")
}

// SPEC 2.10, 2.14: a session outlives every call, whatever sets its total.
func TestSessionTimeout(t *testing.T) {
	const m, h = time.Minute, time.Hour
	tools := func(t policy.Tool) map[string]policy.Tool { return map[string]policy.Tool{"a": t, "b": {}} }
	for _, tc := range []struct {
		name string
		p    *policy.Policy
		vars map[string]string
		want time.Duration
	}{
		{"no policy", nil, nil, 30*m + 30*time.Second},
		{"the default", &policy.Policy{Default: &timeout.Config{Total: m}}, nil, m + 30*time.Second},
		{"a tool's", &policy.Policy{Default: &timeout.Config{Total: m}, Tools: tools(policy.Tool{Limits: &timeout.Config{Total: h}})}, nil, h + 30*time.Second},
		{"a ceiling", &policy.Policy{Default: &timeout.Config{Total: m}, Tools: tools(policy.Tool{MaxTotal: 2 * h})}, nil, 2*h + 30*time.Second},
		{"a variable", &policy.Policy{Tools: tools(policy.Tool{Env: "A"})}, map[string]string{"A_TIMEOUT_MS": "7200000"}, 2*h + 30*time.Second},
		{"everybody's variable", &policy.Policy{Tools: tools(policy.Tool{Limits: &timeout.Config{Total: h}})}, map[string]string{"MCP_TIMEOUT": "60"}, m + 30*time.Second},
		{"one is off", &policy.Policy{Tools: tools(policy.Tool{Limits: &timeout.Config{Idle: m}, MaxTotal: h})}, nil, 0},
		{"one is switched off", &policy.Policy{Tools: tools(policy.Tool{Env: "A"})}, map[string]string{"A_TIMEOUT_MS": "0"}, 0},
		{"the default is off", &policy.Policy{Default: &timeout.Config{}, Tools: tools(policy.Tool{Limits: &timeout.Config{Total: h}})}, nil, 0},
		{"one is observed", &policy.Policy{Tools: tools(policy.Tool{ObserveOnly: true})}, nil, 0},
		{"all are observed", &policy.Policy{ObserveOnly: true}, nil, 0},
		{"the longest there is", &policy.Policy{Default: &timeout.Config{Total: math.MaxInt64}}, nil, math.MaxInt64},
	} {
		t.Run(tc.name, func(t *testing.T) {
			timeout.SetDefault(timeout.Default())
			if tc.p != nil {
				tc.p.Lookup = env(tc.vars)
			}
			if got, err := tc.p.SessionTimeout(); got != tc.want || err != nil {
				t.Errorf("%v, %v, want %v", got, err, tc.want)
			}
		})
	}
	var bad *timeout.ConfigError
	p := &policy.Policy{Default: &timeout.Config{}, Tools: tools(policy.Tool{Env: "A"}), Lookup: env(map[string]string{"A_TIMEOUT_MS": "soon"})}
	if _, err := p.SessionTimeout(); !errors.As(err, &bad) || bad.Tool != "a" {
		t.Errorf("%v", err)
	}
}

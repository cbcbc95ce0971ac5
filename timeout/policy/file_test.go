package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// samePolicy compares what a file holds.
func samePolicy(t *testing.T, what string, want, got *policy.Policy) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(policy.Policy{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// SPEC 2.12, 2.13: a tool inherits the keys that it does not have, and 0 is off. A policy that was read
// writes itself back.
func TestParse(t *testing.T) {
	const s, m = time.Second, time.Minute
	limits := func(total, idle, grace time.Duration) *timeout.Config {
		return &timeout.Config{Total: total, Idle: idle, Grace: grace}
	}
	issue := &policy.Policy{Default: limits(30*m, 2*m, 7*s), Tools: map[string]policy.Tool{
		"tlc_smoke": {Limits: limits(2*m, 2*m, 7*s), Env: "TLC_SMOKE"},
		"build":     {Soft: 45 * s, TaskOnly: true},
	}}
	for _, tc := range []struct {
		name, text string
		want       *policy.Policy
	}{
		{"a whole policy", `{"timeout":1800,"idle_timeout":120,"grace":7,"tools":{"tlc_smoke":{"timeout":120,"env":"TLC_SMOKE"},"build":{"soft":45,"task_only":true}}}`, issue},
		{"under mcp", `{"log":{"level":null},"mcp":{"timeout":"30m","idle_timeout":"2m","grace":"7s","tools":{"build":{"soft":"45s","task_only":true},"tlc_smoke":{"env":"TLC_SMOKE","timeout":"120s"}}}}`, issue},
		{"nothing", ` {} `, &policy.Policy{}},
		{"nothing under mcp", `{"mcp":{}}`, &policy.Policy{}},
		{"no tools", `{"tools":{}}`, &policy.Policy{}},
		{"one limit", `{"timeout":5}`, &policy.Policy{Default: limits(5*s, 2*m, 0)}},
		{"all off", `{"timeout":0,"idle_timeout":0}`, &policy.Policy{Default: &timeout.Config{}}},
		{"only a tool's", `{"tools":{"a":{"idle_timeout":0},"b":{}}}`, &policy.Policy{Tools: map[string]policy.Tool{"a": {Limits: limits(30*m, 0, 0)}, "b": {}}}},
		{"tools before the limits they inherit", `{"tools":{"a":{"timeout":9}},"idle_timeout":3,"grace":-1}`,
			&policy.Policy{Default: limits(30*m, 3*s, -s), Tools: map[string]policy.Tool{"a": {Limits: limits(9*s, 3*s, -s)}}}},
		{"the default grace under another", `{"grace":3,"tools":{"a":{"grace":0}}}`,
			&policy.Policy{Default: limits(30*m, 2*m, 3*s), Tools: map[string]policy.Tool{"a": {Limits: limits(30*m, 2*m, 0)}}}},
		{"everything of a tool", `{"tools":{"tools.x":{"timeout":1,"idle_timeout":0.5,"grace":2,"max_timeout":"1h","soft":-1,"task_only":false,"env":"X_TIMEOUT_MS"}}}`,
			&policy.Policy{Tools: map[string]policy.Tool{"tools.x": {Limits: limits(s, s/2, 2*s), MaxTotal: time.Hour, Soft: -s, Env: "X_TIMEOUT_MS"}}}},
		{"somebody else's file", `{"trace":true,"pools":5,"race":"fast","MCP":[],"grade":"A","log":{"level":null},"env":{"A":"1"},"port":3002,"soft":true}`, &policy.Policy{}},
		{"sections beside mcp", `{"timeout":9,"tools":["bash"],"Mcp":1,"mcp":{"timeout":60,"port":3002,"env":{"A":"1"},"tools":{"a":{"timeout":5,"description":"x"}}}}`,
			&policy.Policy{Default: limits(m, 2*m, 0), Tools: map[string]policy.Tool{"a": {Limits: limits(5*s, 2*m, 0)}}}},
		{"keys beside ours", `{"timeout":60,"port":3002,"env":{}}`, &policy.Policy{Default: limits(m, 2*m, 0)}},
		{"a tool named mcp, and one without a name", `{"tools":{"mcp":{"soft":1},"":{"soft":2}}}`, &policy.Policy{Tools: map[string]policy.Tool{"mcp": {Soft: s}, "": {Soft: 2 * s}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			timeout.SetDefault(timeout.Default())
			got, err := policy.Parse([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			samePolicy(t, "read", tc.want, got)
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := policy.Parse(written)
			if err != nil {
				t.Fatalf("%s: %v", written, err)
			}
			samePolicy(t, string(written), got, again)
		})
	}
}

// SPEC 2.13: a limit that is missing at the top is the process default's.
func TestParseInheritsTheProcessDefault(t *testing.T) {
	timeout.SetDefault(timeout.Config{Total: time.Hour, Idle: 5 * time.Second, Grace: time.Second})
	defer timeout.SetDefault(timeout.Default())
	got, err := policy.Parse([]byte(`{"timeout":9,"tools":{"a":{"timeout":8}}}`))
	if err != nil {
		t.Fatal(err)
	}
	samePolicy(t, "read", &policy.Policy{
		Default: &timeout.Config{Total: 9 * time.Second, Idle: 5 * time.Second, Grace: time.Second},
		Tools:   map[string]policy.Tool{"a": {Limits: &timeout.Config{Total: 8 * time.Second, Idle: 5 * time.Second, Grace: time.Second}}},
	}, got)
}

// SPEC 2.9, 2.12.
func TestParseRefuses(t *testing.T) {
	const (
		duration = `: want seconds as a number up to 9223372036, such as 120 or 0.5, no finer than a nanosecond, or a duration in quotation marks, such as "30m"`
		whole    = `: want an object such as {"timeout": 1800, "tools": {"build": {"timeout": 600}}}`
		variable = `: want the name of an environment variable, such as TLC_SMOKE`
	)
	for text, want := range map[string]string{
		``:                                        "",
		`{`:                                       "",
		`{"timeout":5} {}`:                        "",
		`{"timeout":NaN}`:                         "",
		` null `:                                  `timeout: policy="null"` + whole,
		`[]`:                                      `timeout: policy="[]"` + whole,
		`"30m"`:                                   `timeout: policy="\"30m\""` + whole,
		`{"mcp":null}`:                            `timeout: mcp="null"` + whole,
		`{"mcp":5}`:                               `timeout: mcp="5"` + whole,
		`{"Timeout":5}`:                           `timeout: Timeout="5": want the key timeout`,
		`{"trace":true,"grade":5}`:                `timeout: grade="5": want the key grace`,
		`{"port":1,"idle-timeout":5}`:             `timeout: idle-timeout="5": want the key idle_timeout`,
		`{"mpc":{"timeout":5}}`:                   `timeout: mpc="{\"timeout\":5}": want the key mcp`,
		`{"MCP":{"timeout":5}}`:                   `timeout: MCP="{\"timeout\":5}": want the key mcp`,
		`{"mcp":{"tool":{}}}`:                     `timeout: mcp.tool="{}": want the key tools`,
		`{"mcp":{"soft":5}}`:                      `timeout: mcp.soft="5": want it in one of the tools`,
		`{"timeout":5,"task_only":true}`:          `timeout: task_only="true": want it in one of the tools`,
		`{"tools":{"a":{"maxTimeout":1}}}`:        `timeout: tools.a.maxTimeout="1": want the key max_timeout`,
		`{"timeout":"soon"}`:                      `timeout: timeout="\"soon\""` + duration,
		`{"mcp":{"idle_timeout":true}}`:           `timeout: mcp.idle_timeout="true"` + duration,
		`{"timeout":1,"timeout":1}`:               `timeout: timeout="1": want each key once`,
		`{"mcp":{"grace":1,"grace":2}}`:           `timeout: mcp.grace="2": want each key once`,
		`{"tools":{"a":{},"a":{"soft":1}}}`:       `timeout: tools.a="{\"soft\":1}": want each key once`,
		`{"tools":{"a":{"soft":1,"soft":2}}}`:     `timeout: tools.a.soft="2": want each key once`,
		`{"tools":null}`:                          `timeout: tools="null": want an object that maps names of tools to limits`,
		`{"tools":["a"]}`:                         `timeout: tools="[\"a\"]": want an object that maps names of tools to limits`,
		`{"tools":{"a":null}}`:                    `timeout: tools.a="null": want an object such as {"timeout": 600}`,
		`{"tools":{"a":60}}`:                      `timeout: tools.a="60": want an object such as {"timeout": 600}`,
		`{"tools":{"a":{"TIMEOUT":1}}}`:           `timeout: tools.a.TIMEOUT="1": want the key timeout`,
		`{"tools":{"a":{"timeout":null}}}`:        `timeout: tools.a.timeout="null"` + duration,
		`{"mcp":{"tools":{"a":{"grace":1e400}}}}`: `timeout: mcp.tools.a.grace="1e400"` + duration,
		`{"tools":{"a":{"soft":"45"}}}`:           `timeout: tools.a.soft="\"45\""` + duration,
		`{"tools":{"a":{"max_timeout":1e10}}}`:    `timeout: tools.a.max_timeout="1e10"` + duration,
		`{"tools":{"a":{"task_only":"yes"}}}`:     `timeout: tools.a.task_only="\"yes\"": want true or false`,
		`{"tools":{"a":{"task_only":null}}}`:      `timeout: tools.a.task_only="null": want true or false`,
		`{"tools":{"a":{"task_only":1}}}`:         `timeout: tools.a.task_only="1": want true or false`,
		`{"tools":{"a":{"env":""}}}`:              `timeout: tools.a.env="\"\""` + variable,
		`{"tools":{"a":{"env":null}}}`:            `timeout: tools.a.env="null"` + variable,
		`{"tools":{"a":{"env":7}}}`:               `timeout: tools.a.env="7"` + variable,
		`{"tools":{"a":{"env":"A=B"}}}`:           `timeout: tools.a.env="\"A=B\""` + variable,
	} {
		got, err := policy.Parse([]byte(text))
		var bad *timeout.ConfigError
		if got != nil || err == nil || want != "" && (!errors.As(err, &bad) || err.Error() != want) {
			t.Errorf("%s: %v, want %s", text, err, want)
			continue
		}
		if want != "" && strings.Contains(bad.Key, "tools.a.") && bad.Tool != "a" {
			t.Errorf("%s: the error is of the tool %q", text, bad.Tool)
		}
	}
}

// SPEC 2.12: a key that is not given stays as it was, in the policy and in each tool; after an error,
// all do.
func TestUnmarshalChangesWhatIsGiven(t *testing.T) {
	fast, slow := timeout.FastTools(), timeout.Config{Total: time.Hour, Idle: time.Minute}
	tools := map[string]policy.Tool{
		"a": {Limits: &slow, Env: "A", MaxTotal: 2 * time.Hour, ObserveOnly: true},
		"b": {Soft: time.Second, TaskOnly: true},
	}
	p := &policy.Policy{Default: &fast, Tools: tools, TotalEnv: "-"}
	for _, text := range []string{`{"grace":5,"tools":{"b":{"soft":9},"c":{"soft":"x"}}}`, `{"grace":5,"tools":5}`, `{"mcp":5}`} {
		if err := json.Unmarshal([]byte(text), p); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	if err := json.Unmarshal([]byte(`null`), p); err != nil {
		t.Error(err)
	}
	samePolicy(t, "after errors", &policy.Policy{Default: &fast, Tools: tools, TotalEnv: "-"}, p)

	if err := json.Unmarshal([]byte(`{"idle_timeout":7,"tools":{"a":{"timeout":1800},"b":{"task_only":false},"c":{"grace":1}}}`), p); err != nil {
		t.Fatal(err)
	}
	samePolicy(t, "changed", &policy.Policy{
		Default: &timeout.Config{Total: time.Minute, Idle: 7 * time.Second},
		Tools: map[string]policy.Tool{
			"a": {Limits: &timeout.Config{Total: 30 * time.Minute, Idle: time.Minute}, Env: "A", MaxTotal: 2 * time.Hour, ObserveOnly: true},
			"b": {Soft: time.Second},
			"c": {Limits: &timeout.Config{Total: time.Minute, Idle: 7 * time.Second, Grace: time.Second}},
		},
		TotalEnv: "-",
	}, p)
	if len(tools) != 2 || fast != timeout.FastTools() || slow.Total != time.Hour {
		t.Error("what the policy was made of has changed")
	}
}

// SPEC 2.12: a file that is read again is for the calls that begin from then on; those in progress keep
// their limits. Everything that a policy is asked for is of the new one.
func TestReplace(t *testing.T) {
	parse := func(text string) *policy.Policy {
		q, err := policy.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := parse(`{"timeout":60,"idle_timeout":0,"tools":{"a":{"timeout":40}}}`)
		p.Logger = slog.New(slog.NewTextHandler(&log, nil))
		p.Lookup = env(map[string]string{"A_TIMEOUT_MS": "5000"})
		var mu sync.Mutex
		ends := map[string]time.Duration{}
		run := func(tool, name string) {
			start := time.Now()
			go func() {
				_ = timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, p.For(tool, 0)...)
				mu.Lock()
				defer mu.Unlock()
				ends[name] = time.Since(start)
			}()
			synctest.Wait()
		}
		run("a", "a before")
		run("b", "b before")
		q := parse(`{"timeout":20,"idle_timeout":0,"tools":{"a":{"env":"A","soft":3,"max_timeout":50}}}`)
		p.Replace(q)
		run("a", "a after")
		run("b", "b after")
		time.Sleep(time.Hour)
		synctest.Wait()
		if d := cmp.Diff(map[string]time.Duration{"a before": 40 * time.Second, "b before": time.Minute, "a after": 5 * time.Second, "b after": 20 * time.Second}, ends); d != "" {
			t.Errorf("ended after (-want +got):\n%s", d)
		}
		if soft, _ := p.Soft("a"); soft != 3*time.Second {
			t.Error("soft", soft)
		}
		if d, err := p.SessionTimeout(); d != 80*time.Second || err != nil {
			t.Error("session", d, err)
		}
		if got := p.Current().Tools["a"].MaxTotal; got != 50*time.Second {
			t.Error("ceiling", got)
		}
		if got := p.Tools["a"].Limits.Total; got != 40*time.Second {
			t.Error("the fields changed", got)
		}
		written, err := json.Marshal(p)
		want, _ := json.Marshal(q)
		if err != nil || string(written) != string(want) {
			t.Errorf("%s, %v", written, err)
		}
		if n := strings.Count(log.String(), "tool timed out"); n != 4 {
			t.Errorf("%d calls were logged to the policy's logger:\n%s", n, &log)
		}
		p.Replace(nil)
		if got, err := p.Resolve("b", 0); err != nil || got.Total != 30*time.Minute {
			t.Errorf("without limits: %v, %v", got, err)
		}
	})
}

// Only what a file holds is replaced.
func TestReplaceKeepsTheRest(t *testing.T) {
	var log bytes.Buffer
	p := &policy.Policy{
		TotalEnv: "T", IdleEnv: "I", Lookup: env(map[string]string{"T": "5", "I": "-1", "MCP_TIMEOUT": "9"}),
		Logger: slog.New(slog.NewTextHandler(&log, nil)), ObserveOnly: true,
	}
	p.Replace(&policy.Policy{Default: limits(timeout.FastTools()), TotalEnv: "-", IdleEnv: "-", Lookup: env(nil)})
	p.Replace(&policy.Policy{Default: limits(timeout.UnboundedTotal())}) // not of the one before
	got, err := p.Resolve("x", 0)
	if want := (timeout.Config{Total: 5 * time.Second}); got != want || err != nil || !p.Observes("x") || !strings.Contains(log.String(), "idle timeout -1s is negative") {
		t.Errorf("%v, %v, observed: %v, log:\n%s", got, err, p.Observes("x"), &log)
	}
}

// A nil policy cannot keep what replaces it, and says so.
func TestReplaceOfNil(t *testing.T) {
	defer func() {
		if bad, ok := recover().(*timeout.ConfigError); !ok || bad.Key != "policy" {
			t.Errorf("panic %v", bad)
		}
	}()
	(*policy.Policy)(nil).Replace(new(policy.Policy))
}

// The fields of a replaced policy are not in force, so reading into them must not look like success.
func TestUnmarshalAfterReplace(t *testing.T) {
	var p policy.Policy
	p.Replace(new(policy.Policy))
	if err := json.Unmarshal([]byte(`{"timeout": 60}`), &p); err == nil || p.Default != nil {
		t.Errorf("error %v, default %v", err, p.Default)
	}
}

// FuzzParse: a policy that was read writes itself back, and an error is short and says what is accepted.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"timeout":1800,"idle_timeout":120,"grace":7,"tools":{"tlc_smoke":{"timeout":120,"env":"TLC_SMOKE"},"build":{"soft":45,"task_only":true}}}`,
		`{"mcp":{"timeout":"30m","tools":{"a":{"max_timeout":1e3}}}}`, `{"tools":{"a":null}}`, `{"timeout":1,"timeout":2}`, `{"tools":{"\ud800":{"soft":-0.5}}}`,
		`{"timeout":9223372036854775808}`, `{"grace":"-2562047h47m16.854775808s"}`, `[[[[`, `{"tools":{"<&>":{"env":"\u2028"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse(data)
		if err != nil {
			var bad *timeout.ConfigError
			if p != nil || errors.As(err, &bad) && (bad.Accepted == "" || len(fmt.Sprint(bad.Value)) > 100) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		again, err := policy.Parse(written)
		if err != nil {
			t.Fatalf("%q: %s: %v", data, written, err)
		}
		samePolicy(t, fmt.Sprintf("%q: %s", data, written), p, again)
	})
}

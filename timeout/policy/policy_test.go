package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

var errTool = errors.New("tool failed")

func stopped(t *testing.T, err error) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *timeout.Error", err)
	}
	return e
}

func env(vars map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		v, ok := vars[key]
		return v, ok
	}
}

func limits(c timeout.Config) *timeout.Config { return &c }

// malformed are no numbers of seconds, and mostly not of milliseconds either.
var malformed = []string{"", " ", "abc", "NaN", "+Inf", "1e3", "0x10", "1_000", "1,5", "+5", "--5", "10s", "120 ", "120\x00", "9223372037"}

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

// SPEC 2.6, 2.7, 2.8.
func TestResolve(t *testing.T) {
	const idle = 120 * time.Second
	smokeEnv := map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000"}
	both := map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000", "MCP_TIMEOUT": "500", "MCP_IDLE_TIMEOUT": "45"}
	for _, tc := range []struct {
		name    string
		tool    string
		request time.Duration
		vars    map[string]string
		want    timeout.Config
	}{
		{"default", "other", 0, nil, timeout.Default()},
		{"check has no total", "tlc_check", 0, nil, timeout.Config{Idle: idle}},
		{"smoke", "tlc_smoke", 0, nil, timeout.Config{Total: 2 * time.Minute, Idle: idle}},
		{"explore", "tlc_explore", 0, nil, timeout.Config{Total: 10 * time.Minute, Idle: idle}},
		{"environment over policy", "tlc_smoke", 0, smokeEnv, timeout.Config{Total: 90 * time.Second, Idle: 90 * time.Second}},
		{"another tool's variable", "tlc_explore", 0, smokeEnv, timeout.Config{Total: 10 * time.Minute, Idle: idle}},
		{"variable given in full", "tlc_explore", 0, map[string]string{"TLC_EXPLORE_TIMEOUT_MS": "700000"}, timeout.Config{Total: 700 * time.Second, Idle: idle}},
		{"the tool's variable over the general one", "tlc_smoke", 0, both, timeout.Config{Total: 90 * time.Second, Idle: 45 * time.Second}},
		{"the general variable over the policy", "tlc_explore", 0, both, timeout.Config{Total: 500 * time.Second, Idle: 45 * time.Second}},
		{"the general variable over the default", "other", 0, both, timeout.Config{Total: 500 * time.Second, Idle: 45 * time.Second}},
		{"the variable switches off", "tlc_smoke", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "0"}, timeout.Config{Idle: idle}},
		{"request over all", "tlc_smoke", 300 * time.Second, both, timeout.Config{Total: 300 * time.Second, Idle: 45 * time.Second}},
		{"request for a tool without a total", "tlc_check", time.Hour, nil, timeout.Config{Total: time.Hour, Idle: idle}},
		{"request below the ceiling", "tlc_explore", time.Hour - 1, nil, timeout.Config{Total: time.Hour - 1, Idle: idle}},
		{"request at the ceiling", "tlc_explore", time.Hour, nil, timeout.Config{Total: time.Hour, Idle: idle}},
		{"request above the ceiling", "tlc_explore", time.Hour + 1, nil, timeout.Config{Total: time.Hour, Idle: idle}},
		{"request below the idle limit", "other", time.Second, nil, timeout.Config{Total: time.Second, Idle: time.Second}},
		{"negative in the environment", "tlc_smoke", 0, map[string]string{"TLC_SMOKE_TIMEOUT_MS": "-1"}, timeout.Config{Idle: idle}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tlaPolicy(tc.vars).Resolve(tc.tool, tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 2.9.
func TestResolveRefuses(t *testing.T) {
	const millis = "milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000"
	for _, value := range append([]string{"1.5", "0.5", "9223372036855"}, malformed...) {
		_, err := tlaPolicy(map[string]string{"TLC_SMOKE_TIMEOUT_MS": value}).Resolve("tlc_smoke", 0)
		var bad *timeout.ConfigError
		if value == "9223372037" {
			if err != nil {
				t.Errorf("%q: %v", value, err) // too many seconds, but fine as milliseconds
			}
			continue
		}
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v, want a *ConfigError", value, err)
			continue
		}
		if diff := cmp.Diff(timeout.ConfigError{Key: "TLC_SMOKE_TIMEOUT_MS", Value: value, Accepted: millis, Tool: "tlc_smoke"}, *bad); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
	_, err := tlaPolicy(nil).Resolve("tlc_smoke", -1500*time.Microsecond)
	if want := `timeout: timeoutMs="-1.5": want a positive whole number of milliseconds`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	got, err := tlaPolicy(map[string]string{"MCP_TIMEOUT": "soon"}).Resolve("other", 0)
	if err == nil || got != (timeout.Config{}) {
		t.Errorf("%v, %v", got, err)
	}
}

// SPEC 3.19: also of a variable that is every tool's, and where two cannot be read.
func TestResolveNamesTheTool(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"total": {"MCP_TIMEOUT": "soon"},
		"both":  {"MCP_TIMEOUT": "soon", "MCP_IDLE_TIMEOUT": "never"},
		"own":   {"TLC_SMOKE_TIMEOUT_MS": "never"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tlaPolicy(vars).Resolve("tlc_smoke", 0)
			if bad, ok := err.(*timeout.ConfigError); !ok || bad.Tool != "tlc_smoke" {
				t.Fatalf("%#v", err)
			}
			if got := fmt.Sprintf("%+v", err); got != err.Error()+" [tool tlc_smoke]" {
				t.Errorf("%%+v is %s", got)
			}
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "err", err)
			if !strings.Contains(log.String(), " err.tool=tlc_smoke") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// A tool that has no Config of its own is not left without limits.
func TestToolWithoutConfig(t *testing.T) {
	var buf bytes.Buffer
	p := policy.Policy{
		Default: limits(timeout.FastTools()),
		Tools: map[string]policy.Tool{
			"env":     {Env: "X"},
			"ceiling": {MaxTotal: 30 * time.Second},
			"bad":     {MaxTotal: -1},
			"off":     {Limits: &timeout.Config{Grace: timeout.DefaultGrace}},
		},
		Lookup: env(map[string]string{"X_TIMEOUT_MS": "45000"}),
		Logger: slog.New(slog.NewTextHandler(&buf, nil)),
	}
	for _, tc := range []struct {
		tool    string
		request time.Duration
		want    timeout.Config
	}{
		{"env", 0, timeout.Config{Total: 45 * time.Second, Idle: 30 * time.Second}},
		{"ceiling", 0, timeout.FastTools()},
		{"ceiling", time.Hour, timeout.Config{Total: 30 * time.Second, Idle: 30 * time.Second}},
		{"bad", time.Hour, timeout.Config{Total: time.Hour, Idle: 30 * time.Second}},
		{"off", 0, timeout.Config{Grace: timeout.DefaultGrace}},
	} {
		if got, err := p.Resolve(tc.tool, tc.request); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.tool, got, err, tc.want)
		}
	}
	if !strings.Contains(buf.String(), `msg="the tool's ceiling is negative; using none" tool=bad ceiling=-1ns`) {
		t.Errorf("log:\n%s", buf.String())
	}
}

func TestZeroPolicy(t *testing.T) {
	timeout.SetDefault(timeout.FastTools())
	defer timeout.SetDefault(timeout.Default())
	var none *policy.Policy
	for name, p := range map[string]*policy.Policy{"zero": {}, "nil": none} {
		if got, err := p.Resolve("any", 0); err != nil || got != timeout.FastTools() {
			t.Errorf("%s policy: %v, %v, want the process default", name, got, err)
		}
	}
}

// SPEC 2.2, 2.3, 2.6: a clamped value is logged.
func TestResolveLogs(t *testing.T) {
	var buf bytes.Buffer
	p := tlaPolicy(map[string]string{"MCP_IDLE_TIMEOUT": "-7"})
	p.Logger = slog.New(slog.NewTextHandler(&buf, nil))
	if _, err := p.Resolve("tlc_explore", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := tlaPolicy(nil).Resolve("other", 1); err != nil { // clamps without a logger
		t.Fatal(err)
	}
	lines := strings.Count(buf.String(), "\n")
	if _, err := p.Resolve("tlc_explore", time.Hour); err != nil { // at the ceiling
		t.Fatal(err)
	}
	if n := strings.Count(buf.String(), "\n"); n != lines+1 || strings.Count(buf.String(), "ceiling;") != 1 {
		t.Errorf("a request at the ceiling is warned about:\n%s", buf.String())
	}
	for _, want := range []string{
		`level=WARN msg="requested timeout exceeds the tool's ceiling; using the ceiling" tool=tlc_explore requested=2h0m0s ceiling=1h0m0s`,
		`level=WARN msg="idle timeout -7s is negative; using 0 (no idle check)" tool=tlc_explore`,
	} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("log has no %s:\n%s", want, buf.String())
		}
	}
}

// SPEC 2.13: a limit of 0 is off wherever the Config stands, and a Config that is not given is nil.
func TestZeroIsOff(t *testing.T) {
	bare := func(opts ...timeout.Option) func() []timeout.Option {
		return func() []timeout.Option { return opts }
	}
	under := func(p policy.Policy) func() []timeout.Option {
		p.Lookup = env(nil)
		return func() []timeout.Option { return p.For("a", 0) }
	}
	tool := func(c *timeout.Config) map[string]policy.Tool { return map[string]policy.Tool{"a": {Limits: c}} }
	zero, hour := timeout.Config{}, timeout.Config{Total: time.Hour}
	for _, tc := range []struct {
		name string
		def  timeout.Config // the process default
		opts func() []timeout.Option
		want time.Duration // the total; 0 is none
	}{
		{"no argument", timeout.FastTools(), bare(), time.Minute},
		{"zero argument", timeout.FastTools(), bare(zero), 0},
		{"zero process default", zero, bare(), 0},
		{"zero process default, under a policy", zero, under(policy.Policy{}), 0},
		{"no default", timeout.FastTools(), under(policy.Policy{}), time.Minute},
		{"default", timeout.FastTools(), under(policy.Policy{Default: &hour}), time.Hour},
		{"zero default", timeout.FastTools(), under(policy.Policy{Default: &zero}), 0},
		{"no limits of the tool", timeout.FastTools(), under(policy.Policy{Default: &hour, Tools: tool(nil)}), time.Hour},
		{"neither", timeout.FastTools(), under(policy.Policy{Tools: tool(nil)}), time.Minute},
		{"zero default, no limits of the tool", timeout.FastTools(), under(policy.Policy{Default: &zero, Tools: tool(nil)}), 0},
		{"zero limits of the tool", timeout.FastTools(), under(policy.Policy{Default: &hour, Tools: tool(&zero)}), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			timeout.SetDefault(tc.def)
			defer timeout.SetDefault(timeout.Default())
			var got time.Duration
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				if deadline, ok := ctx.Deadline(); ok {
					got = time.Until(deadline).Round(time.Second)
				}
				return nil
			}, tc.opts()...)
			if err != nil || got != tc.want {
				t.Errorf("total %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

// SPEC 2.3, 2.6: an idle limit that a request's total cuts is nobody's mistake; one above
// the total of the configuration is.
func TestClampOfARequest(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name    string
		config  timeout.Config
		vars    map[string]string
		request time.Duration
		want    timeout.Config
		warning string
	}{
		{"at the idle limit", timeout.Config{Total: 60 * ms, Idle: 20 * ms}, nil, 20 * ms, timeout.Config{Total: 20 * ms, Idle: 20 * ms}, ""},
		{"below", timeout.Config{Total: 60 * ms, Idle: 20 * ms}, nil, 20*ms - 1, timeout.Config{Total: 20*ms - 1, Idle: 20*ms - 1}, ""},
		{"no total otherwise", timeout.Config{Idle: 20 * ms}, nil, 5 * ms, timeout.Config{Total: 5 * ms, Idle: 5 * ms}, ""},
		{"no idle limit", timeout.Config{Total: 60 * ms}, nil, 5 * ms, timeout.Config{Total: 5 * ms}, ""},
		{"negative idle limit", timeout.Config{Total: 60 * ms, Idle: -1}, nil, 5 * ms, timeout.Config{Total: 5 * ms}, "idle timeout -1ns is negative; using 0 (no idle check)"},
		{"the configuration's own", timeout.Config{Total: 60 * ms, Idle: 80 * ms}, nil, 0, timeout.Config{Total: 60 * ms, Idle: 60 * ms}, "idle timeout 80ms exceeds total timeout 60ms; using 60ms"},
		{"the environment's", timeout.Config{Total: 60 * ms, Idle: 20 * ms}, map[string]string{"MCP_TIMEOUT": "0.01"}, 0, timeout.Config{Total: 10 * ms, Idle: 10 * ms}, "idle timeout 20ms exceeds total timeout 10ms; using 10ms"},
		{"the request gives it room", timeout.Config{Total: 60 * ms, Idle: 80 * ms}, nil, 90 * ms, timeout.Config{Total: 90 * ms, Idle: 80 * ms}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var buf bytes.Buffer
			p := policy.Policy{Default: limits(tc.config), Lookup: env(tc.vars), Logger: slog.New(slog.NewTextHandler(&buf, nil))}
			got, err := p.Resolve("a", tc.request)
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
			// What Run is given needs no correction, so it says nothing either.
			synctest.Test(t, func(t *testing.T) {
				_ = timeout.Run(t.Context(), func(context.Context) error { return nil }, got, timeout.WithLogger(p.Logger))
			})
			if lines := strings.Count(buf.String(), "\n"); tc.warning == "" && lines > 0 || tc.warning != "" && (lines != 1 || !strings.Contains(buf.String(), tc.warning)) {
				t.Errorf("log %q, want %q", buf.String(), tc.warning)
			}
		})
	}
}

// What For returns has each part, and options that come after it replace them.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf, other bytes.Buffer
		p := tlaPolicy(map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000", "MCP_IDLE_TIMEOUT": "0"})
		p.Logger = slog.New(slog.NewTextHandler(&buf, nil))
		wait := func(ctx context.Context) error { <-ctx.Done(); return errTool }
		for _, tc := range []struct {
			name    string
			tool    string
			request time.Duration
			opts    []timeout.Option
			total   time.Duration
		}{
			{"environment", "tlc_smoke", 0, nil, 90 * time.Second},
			{"request", "tlc_smoke", 5 * time.Minute, nil, 5 * time.Minute},
			{"ceiling", "tlc_explore", 2 * time.Hour, nil, time.Hour},
			{"an option", "tlc_smoke", 5 * time.Minute, []timeout.Option{nil, timeout.Config{Total: time.Second}}, time.Second},
		} {
			err := timeout.Run(t.Context(), wait, append(p.For(tc.tool, tc.request), tc.opts...)...)
			if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Limit != tc.total || e.Elapsed != tc.total || e.Tool != tc.tool || e.Err != errTool {
				t.Errorf("%s: %v after %v in %q, with %v", tc.name, err, e.Elapsed, e.Tool, e.Err)
			}
		}
		if n := strings.Count(buf.String(), `msg="tool timed out"`); n != 4 {
			t.Errorf("%d outcomes in the policy's log:\n%s", n, buf.String())
		}

		buf.Reset()
		logger := slog.New(slog.NewTextHandler(&other, nil))
		err := timeout.Run(t.Context(), wait, append(p.For("tlc_explore", 2*time.Hour), timeout.WithLogger(logger), timeout.WithName("mine"))...)
		if e := stopped(t, err); e.Tool != "mine" {
			t.Errorf("tool %q", e.Tool)
		}
		if !strings.Contains(buf.String(), "exceeds the tool's ceiling") || !strings.Contains(other.String(), "tool timed out") {
			t.Errorf("the policy's log:\n%s\nthe call's:\n%s", buf.String(), other.String())
		}
	})
}

// A nil policy has the process default, and still names the tool.
func TestForNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *policy.Policy
		got, err := timeout.Do(t.Context(), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "partial", nil
		}, none.For("search", time.Second)...)
		if e := stopped(t, err); got != "partial" || e.Limit != time.Second || e.Tool != "search" {
			t.Errorf("%q, %v in %q", got, err, e.Tool)
		}
	})
}

// SPEC 3.18: a policy observes every tool, or one, and what is only observed is not stopped.
func TestForObserves(t *testing.T) {
	limits := timeout.Config{Total: time.Second}
	one := map[string]policy.Tool{"a": {ObserveOnly: true}}
	for _, tc := range []struct {
		name   string
		policy *policy.Policy
		want   map[string]bool // observed only
	}{
		{"none", &policy.Policy{Default: &limits}, map[string]bool{"a": false, "b": false}},
		{"all", &policy.Policy{Default: &limits, ObserveOnly: true, Tools: map[string]policy.Tool{"a": {Limits: &limits}}}, map[string]bool{"a": true, "b": true}},
		{"one", &policy.Policy{Default: &limits, Tools: one}, map[string]bool{"a": true, "b": false}},
	} {
		tc.policy.Lookup = env(nil)
		for tool, observed := range tc.want {
			t.Run(tc.name+"/"+tool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					value, err := timeout.Do(t.Context(), func(ctx context.Context) (string, error) {
						select {
						case <-ctx.Done():
							return "", ctx.Err()
						case <-time.After(time.Minute):
							return "done", nil
						}
					}, tc.policy.For(tool, 0)...)
					if errors.Is(err, timeout.ErrTotal) == observed || observed && (err != nil || value != "done") {
						t.Errorf("%v, %q", err, value)
					}
					if got := tc.policy.Observes(tool); got != observed {
						t.Errorf("Observes: %v", got)
					}
					if got, err := tc.policy.Resolve(tool, 0); err != nil || got != limits {
						t.Errorf("Resolve: %v, %v", got, err)
					}
				})
			})
		}
	}
	if (*policy.Policy)(nil).Observes("a") {
		t.Error("a nil policy observes")
	}
}

// SPEC 2.9: settings that cannot be read are an error, and the function is not called.
func TestForRefuses(t *testing.T) {
	p := tlaPolicy(map[string]string{"TLC_SMOKE_TIMEOUT_MS": "soon"})
	for _, tc := range []struct {
		tool    string
		request time.Duration
		key     string
	}{{"tlc_smoke", 0, "TLC_SMOKE_TIMEOUT_MS"}, {"tlc_smoke", time.Second, "TLC_SMOKE_TIMEOUT_MS"}, {"tlc_check", -1, "timeoutMs"}} {
		called := false
		got, err := timeout.Do(t.Context(), func(context.Context) (int, error) { called = true; return 1, nil }, p.For(tc.tool, tc.request)...)
		var bad *timeout.ConfigError
		if !errors.As(err, &bad) || bad.Key != tc.key || bad.Tool != tc.tool || called || got != 0 {
			t.Errorf("%s: %d, %v, called %v", tc.tool, got, err, called)
		}
	}
}

// SPEC 2.7: the variables of the policy have the names that it says.
func TestPolicyNamesVariables(t *testing.T) {
	vars := map[string]string{"MCP_TIMEOUT": "50", "MCP_IDLE_TIMEOUT": "5", "TLA_TIMEOUT": "70", "TLA_IDLE_TIMEOUT": "7", "-": "soon"}
	for _, tc := range []struct {
		total, idle string
		want        timeout.Config
	}{
		{"", "", timeout.Config{Total: 50 * time.Second, Idle: 5 * time.Second}},
		{"TLA_TIMEOUT", "TLA_IDLE_TIMEOUT", timeout.Config{Total: 70 * time.Second, Idle: 7 * time.Second}},
		{"TLA_TIMEOUT", "", timeout.Config{Total: 70 * time.Second, Idle: 5 * time.Second}},
		{"", "-", timeout.Config{Total: 50 * time.Second, Idle: 30 * time.Second}},
		{"-", "-", timeout.FastTools()},
		{"UNSET", "UNSET", timeout.FastTools()},
	} {
		p := policy.Policy{Default: limits(timeout.FastTools()), TotalEnv: tc.total, IdleEnv: tc.idle, Lookup: env(vars)}
		if got, err := p.Resolve("a", 0); err != nil || got != tc.want {
			t.Errorf("%q, %q: %+v, %v, want %+v", tc.total, tc.idle, got, err, tc.want)
		}
	}
	p := policy.Policy{TotalEnv: "TLA_TIMEOUT", Lookup: env(map[string]string{"TLA_TIMEOUT": "1h"})}
	if _, err := p.Resolve("a", 0); err == nil || !strings.HasPrefix(err.Error(), `timeout: TLA_TIMEOUT="1h": want seconds`) {
		t.Errorf("%v", err)
	}
}

const (
	totalDoubt = `MCP_TIMEOUT=120000 is in seconds, so it means 33.3 hours; in milliseconds it would be 2m0s: for that, set MCP_TIMEOUT=120`
	idleDoubt  = `MCP_IDLE_TIMEOUT=10000 is in seconds, so it means 2.8 hours; in milliseconds it would be 10s: for that, set MCP_IDLE_TIMEOUT=10`
)

// SPEC 2.7: a number of seconds that may have been meant as milliseconds is taken, and
// doubted.
func TestDoubtfulEnvironment(t *testing.T) {
	for _, tc := range []struct {
		name     string
		vars     map[string]string
		policy   policy.Policy
		want     timeout.Config
		warnings []string
	}{
		{"just below", map[string]string{"MCP_TIMEOUT": "9999.999999999", "MCP_IDLE_TIMEOUT": "9999.999999999"}, policy.Policy{},
			timeout.Config{Total: 10_000*time.Second - 1, Idle: 10_000*time.Second - 1}, nil},
		{"total", map[string]string{"MCP_TIMEOUT": "120000"}, policy.Policy{}, timeout.Config{Total: 120_000 * time.Second, Idle: 120 * time.Second}, []string{totalDoubt}},
		{"idle, the least", map[string]string{"MCP_TIMEOUT": "0", "MCP_IDLE_TIMEOUT": "10000"}, policy.Policy{}, timeout.Config{Idle: 10_000 * time.Second}, []string{idleDoubt}},
		{"both", map[string]string{"MCP_TIMEOUT": "120000", "MCP_IDLE_TIMEOUT": "10000"}, policy.Policy{},
			timeout.Config{Total: 120_000 * time.Second, Idle: 10_000 * time.Second}, []string{totalDoubt, idleDoubt}},
		{"negative", map[string]string{"MCP_TIMEOUT": "-120000"}, policy.Policy{}, timeout.Config{Idle: 120 * time.Second},
			[]string{"total timeout -33h20m0s is negative; using 0 (no total limit)"}},
		{"another variable", map[string]string{"T": "120000", "I": "10000"}, policy.Policy{TotalEnv: "T", IdleEnv: "I"}, timeout.Config{Total: 120_000 * time.Second, Idle: 10_000 * time.Second}, nil},
		{"no variable", map[string]string{"MCP_TIMEOUT": "120000"}, policy.Policy{TotalEnv: "-"}, timeout.Default(), nil},
		{"the program's own", nil, policy.Policy{Default: &timeout.Config{Total: 120_000 * time.Second}}, timeout.Config{Total: 120_000 * time.Second}, nil},
		{"the tool's variable", map[string]string{"A_TIMEOUT_MS": "120000000"}, policy.Policy{Tools: map[string]policy.Tool{"a": {Env: "A"}}},
			timeout.Config{Total: 120_000 * time.Second, Idle: 120 * time.Second}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var buf bytes.Buffer
			p := tc.policy
			p.Lookup, p.Logger = env(tc.vars), slog.New(slog.NewTextHandler(&buf, nil))
			got, err := p.Resolve("a", 0)
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
			var want strings.Builder
			for _, w := range tc.warnings {
				want.WriteString(`level=WARN msg="` + w + `" tool=a` + "\n")
			}
			if diff := cmp.Diff(want.String(), withoutTime(buf.String())); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutTime cuts the first attribute off each line.
func withoutTime(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, " ")
		b.WriteString(rest)
	}
	return b.String()
}

// Each doubtful value is logged once, to the first who listens, and not for every request.
func TestDoubtIsLoggedOnce(t *testing.T) {
	var buf bytes.Buffer
	vars := map[string]string{"MCP_TIMEOUT": "4294967296"} // which is 0 in 32 bits
	p := &policy.Policy{Lookup: env(vars)}
	for range 3 {
		_, _ = p.Resolve("a", 0) // nobody listens
	}
	p.Logger = slog.New(slog.NewTextHandler(&buf, nil))
	count := func(key string, want int) {
		t.Helper()
		for range 3 {
			if _, err := p.Resolve("a", time.Second); err != nil {
				t.Fatal(err)
			}
			if err := timeout.Run(t.Context(), func(context.Context) error { return nil }, p.For("b", 0)...); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(buf.String(), key+" is in seconds"); n != want {
			t.Errorf("%s: logged %d times, want %d:\n%s", key, n, want, buf.String())
		}
	}
	count("MCP_TIMEOUT=4294967296", 1)
	vars["MCP_TIMEOUT"] = "120000"
	count("MCP_TIMEOUT=120000", 1)
	vars["MCP_TIMEOUT"] = "7"
	count("MCP_TIMEOUT=7", 0)
	vars["MCP_IDLE_TIMEOUT"] = "10000"
	count("MCP_IDLE_TIMEOUT=10000", 1)
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

// A soft limit that is never reached is a mistake in the policy, and of nobody else.
func TestPolicySoftBeyondTheTotal(t *testing.T) {
	const warning = "the tool's soft limit is not below its total; no call becomes a task"
	for _, tc := range []struct {
		name      string
		soft      time.Duration
		total     time.Duration
		requested time.Duration
		warned    bool
	}{
		{"below", time.Minute - 1, time.Minute, 0, false},
		{"at the total", time.Minute, time.Minute, 0, true},
		{"no total", time.Hour, 0, 0, false},
		{"never", 0, time.Minute, 0, false},
		{"at once", -1, time.Minute, 0, false},
		{"a request for less", 30 * time.Second, time.Minute, time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			p := &policy.Policy{
				Tools:  map[string]policy.Tool{"x": {Limits: &timeout.Config{Total: tc.total, Grace: time.Second}, Soft: tc.soft}},
				Lookup: env(nil), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}
			if _, err := p.Resolve("x", tc.requested); err != nil {
				t.Error(err)
			}
			if strings.Contains(log.String(), warning) != tc.warned {
				t.Errorf("logged: %s", log.String())
			}
		})
	}
}

// FuzzToolEnv compares with big integers: milliseconds that are accepted are exact.
func FuzzToolEnv(f *testing.F) {
	for _, s := range append(malformed, "0", "120000", "-5", "9223372036854", "9223372036855") {
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

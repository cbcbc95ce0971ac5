package timeout_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// tlaPolicy is the reference policy, SPEC 2.8.
func tlaPolicy(vars map[string]string) *timeout.Policy {
	return &timeout.Policy{
		Default: timeout.Default(),
		Tools: map[string]timeout.Tool{
			"tlc_check":   {Config: timeout.UnboundedTotal()},
			"tlc_smoke":   {Config: timeout.Config{Total: 120000 * time.Millisecond, Idle: 120 * time.Second}, Env: "TLC_SMOKE"},
			"tlc_explore": {Config: timeout.Config{Total: 600000 * time.Millisecond, Idle: 120 * time.Second}, Env: "TLC_EXPLORE_TIMEOUT_MS", MaxTotal: time.Hour},
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
		if diff := cmp.Diff(timeout.ConfigError{Key: "TLC_SMOKE_TIMEOUT_MS", Value: value, Accepted: millis}, *bad); diff != "" {
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

// A tool that has no Config of its own is not left without limits.
func TestToolWithoutConfig(t *testing.T) {
	var buf bytes.Buffer
	p := timeout.Policy{
		Default: timeout.FastTools(),
		Tools: map[string]timeout.Tool{
			"env":     {Env: "X"},
			"ceiling": {MaxTotal: 30 * time.Second},
			"bad":     {MaxTotal: -1},
			"off":     {Config: timeout.Config{Grace: timeout.DefaultGrace}},
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
	var none *timeout.Policy
	for name, p := range map[string]*timeout.Policy{"zero": {}, "nil": none} {
		if got, err := p.Resolve("any", 0); err != nil || got != timeout.FastTools() {
			t.Errorf("%s policy: %v, %v, want the process default", name, got, err)
		}
	}
}

// SPEC 2.2, 2.3, 2.6: what is clamped is logged.
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
	for _, want := range []string{
		`level=WARN msg="requested timeout exceeds the tool's ceiling; using the ceiling" tool=tlc_explore requested=2h0m0s ceiling=1h0m0s`,
		`level=WARN msg="idle timeout -7s is negative; using 0 (no idle check)" tool=tlc_explore`,
	} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("log has no %s:\n%s", want, buf.String())
		}
	}
}

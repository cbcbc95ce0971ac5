package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 2.6, 2.7: the table of the README, and what goes before what.
func TestPolicy(t *testing.T) {
	const m, s = time.Minute, time.Second
	for _, tc := range []struct {
		tool    string
		env     map[string]string
		request time.Duration
		want    timeout.Config
	}{
		{"run_command", nil, 0, timeout.Config{Total: 10 * m, Idle: 2 * m, Grace: 9 * s}},
		{"run_command", nil, 50 * m, timeout.Config{Total: 50 * m, Idle: 2 * m, Grace: 9 * s}},
		{"run_command", nil, 61 * m, timeout.Config{Total: 60 * m, Idle: 2 * m, Grace: 9 * s}},
		{"run_command", map[string]string{"RUN_COMMAND_TIMEOUT_MS": "5000", "MCP_TIMEOUT": "7"}, 0, timeout.Config{Total: 5 * s, Idle: 5 * s, Grace: 9 * s}},
		{"run_command", map[string]string{"RUN_COMMAND_TIMEOUT_MS": "5000"}, 9 * s, timeout.Config{Total: 9 * s, Idle: 9 * s, Grace: 9 * s}},
		{"run_command", map[string]string{"MCP_TIMEOUT": "0", "MCP_IDLE_TIMEOUT": "0.5"}, 0, timeout.Config{Idle: s / 2, Grace: 9 * s}},
		{"search", nil, 0, timeout.Config{Total: m, Idle: 30 * s}},
		{"search", map[string]string{"SEARCH_TIMEOUT_MS": "100000"}, 0, timeout.Config{Total: 100 * s, Idle: 30 * s}},
		{"search", nil, 11 * m, timeout.Config{Total: 10 * m, Idle: 30 * s}},
		{"approve", nil, 0, timeout.Config{Total: 3 * m, Idle: 30 * s}},
		{"approve", map[string]string{"APPROVE_TIMEOUT_MS": "90000"}, 0, timeout.Config{Total: 90 * s, Idle: 30 * s}},
		{"hang", nil, 0, timeout.Config{Total: m, Idle: 10 * s}},
		{"hang", map[string]string{"HANG_TIMEOUT_MS": "9000"}, 0, timeout.Config{Total: 9 * s, Idle: 9 * s}},
		{"deaf", nil, 0, timeout.Config{Total: m, Idle: 10 * s, Grace: 2 * s}},
		{"deaf", map[string]string{"DEAF_TIMEOUT_MS": "9000"}, 0, timeout.Config{Total: 9 * s, Idle: 9 * s, Grace: 2 * s}},
	} {
		p := limits(2*m, nil)
		p.Lookup = func(k string) (string, bool) { v, ok := tc.env[k]; return v, ok }
		got, err := p.Resolve(tc.tool, tc.request)
		if d := cmp.Diff(tc.want, got); err != nil || d != "" {
			t.Errorf("%s %v %v: %v\n%s", tc.tool, tc.env, tc.request, err, d)
		}
	}
}

// SPEC 2.10: a session outlives the longest call.
func TestLongest(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want time.Duration
	}{
		"as it is":         {nil, time.Hour + 30*time.Second},
		"an operator's":    {map[string]string{"SEARCH_TIMEOUT_MS": "7200000"}, 2*time.Hour + 30*time.Second},
		"one has no total": {map[string]string{"SEARCH_TIMEOUT_MS": "0"}, 0},
	} {
		p := limits(time.Minute, slog.New(slog.DiscardHandler))
		p.Lookup = func(k string) (string, bool) { v, ok := tc.env[k]; return v, ok }
		got, err := longest(p)
		if err != nil || got.SessionTimeout() != tc.want {
			t.Errorf("%s: %v, %v", name, got.SessionTimeout(), err)
		}
	}
}

// What makes no sense is said at the start, and where it stands.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"bad environment", []string{"SEARCH_TIMEOUT_MS=soon"}, nil, exitUsage, `SEARCH_TIMEOUT_MS="soon"`},
		{"bad general environment", []string{"MCP_TIMEOUT=soon"}, nil, exitUsage, `MCP_TIMEOUT="soon"`},
		{"an argument", nil, []string{"stdio"}, exitUsage, "want no arguments"},
		{"no approval", nil, []string{"-approval-limit", "0s"}, exitUsage, "above 0"},
		{"no interval", nil, []string{"-progress-interval", "-1s"}, exitUsage, "above 0"},
		{"unknown flag", nil, []string{"-port", "1"}, exitUsage, "not defined: -port"},
		{"no port", nil, []string{"-http", "127.0.0.1"}, 1, "missing port"},
		{"help", nil, []string{"-help"}, 0, "-approval-limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := command(t, tc.env, tc.args...)
			out, _ := p.cmd.CombinedOutput()
			if code := p.cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.want) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, tc.code, tc.want, out)
			}
		})
	}
}

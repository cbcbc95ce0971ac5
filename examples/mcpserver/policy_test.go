package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 2.6, 2.7: the table of the README, and its order.
func TestPolicy(t *testing.T) {
	const m, s = time.Minute, time.Second
	for _, tc := range []struct {
		tool    string
		env     map[string]string
		request time.Duration
		want    timeout.Config
	}{
		{"run_command", nil, 0, timeout.Config{Total: 10 * m, Idle: 2 * m, Grace: 9 * s}},
		{"run_command", nil, 61 * m, timeout.Config{Total: 60 * m, Idle: 2 * m, Grace: 9 * s}},
		{"run_command", map[string]string{"RUN_COMMAND_TIMEOUT_MS": "5000", "MCP_TIMEOUT": "7"}, 0, timeout.Config{Total: 5 * s, Idle: 5 * s, Grace: 9 * s}},
		{"run_command", map[string]string{"RUN_COMMAND_TIMEOUT_MS": "5000"}, 9 * s, timeout.Config{Total: 9 * s, Idle: 9 * s, Grace: 9 * s}},
		{"run_command", map[string]string{"MCP_TIMEOUT": "0", "MCP_IDLE_TIMEOUT": "0.5"}, 0, timeout.Config{Idle: s / 2, Grace: 9 * s}},
		{"search", nil, 0, timeout.Config{Total: m, Idle: 30 * s}},
		{"approve", nil, 0, timeout.Config{Total: 3 * m, Idle: 30 * s}},
		{"hang", nil, 0, timeout.Config{Total: m, Idle: 10 * s}},
		{"deaf", nil, 0, timeout.Config{Total: m, Idle: 10 * s, Grace: 2 * s}},
	} {
		p := limits(2*m, nil)
		p.Lookup = func(k string) (string, bool) { v, ok := tc.env[k]; return v, ok }
		got, err := p.Resolve(tc.tool, tc.request)
		if d := cmp.Diff(tc.want, got); err != nil || d != "" {
			t.Errorf("%s %v %v: %v\n%s", tc.tool, tc.env, tc.request, err, d)
		}
	}
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// SPEC 2.12: the settings of the README, in YAML and in JSON, change what they give and nothing else.
func TestSettings(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindStringSubmatch(string(readme))
	if block == nil {
		t.Fatal("the README has no settings")
	}
	asJSON, err := yaml.YAMLToJSON([]byte(block[1]))
	if err != nil {
		t.Fatal(err)
	}
	const m, s = time.Minute, time.Second
	for name, text := range map[string]string{"yaml": block[1], "json": string(asJSON)} {
		t.Run(name, func(t *testing.T) {
			p := limits(2*m, nil)
			p.Lookup = func(string) (string, bool) { return "", false }
			if err := readSettings(p, settingsFile(t, text)); err != nil {
				t.Fatal(err)
			}
			for tool, want := range map[string]timeout.Config{
				"run_command": {Total: 30 * m, Idle: 2 * m, Grace: 9 * s},
				"search":      {Total: m, Idle: 45 * s},
				"hang":        {Total: m, Idle: 10 * s},
				"unknown":     {Total: 5 * m, Idle: 2 * m},
			} {
				if got, err := p.Resolve(tool, 0); err != nil || got != want {
					t.Errorf("%s: %+v, %v, want %+v", tool, got, err, want)
				}
			}
			run := p.Tools["run_command"]
			if run.Env != "RUN_COMMAND" || run.MaxTotal != 2*time.Hour || run.Soft != 45*s || !becomeTasks(p) {
				t.Errorf("%+v", run)
			}
		})
	}
}

// SPEC 11.1, 2.12: a soft limit of the settings alone lets calls become tasks, without -tasks.
func TestSoftLimitOfSettings(t *testing.T) {
	p := limits(time.Minute, nil)
	if err := readSettings(p, settingsFile(t, "tools:\n  search:\n    soft: 45\n")); err != nil || !becomeTasks(p) {
		t.Fatal(err)
	}
	c := new(client)
	c.connect(t, p, options{calls: 16, approval: time.Second, tasks: new(task.Tasks)}, slog.New(slog.DiscardHandler), nil, "2026-07-28")
	defer c.stop()
	if capabilities := c.InitializeResult().Capabilities; capabilities.Extensions[task.ExtensionID] == nil {
		t.Errorf("%+v", capabilities)
	}
}

// SPEC 2.9, 2.12: a value that YAML makes of a mistake is refused, by its key.
func TestBadSettings(t *testing.T) {
	for text, want := range map[string]string{
		"mcp:\n  timeout: soon\n":        `mcp.timeout="\"soon\"": want seconds`,
		"mcp:\n  grace: 1\n  grace: 2\n": `grace`,
	} {
		err := readSettings(limits(time.Minute, nil), settingsFile(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

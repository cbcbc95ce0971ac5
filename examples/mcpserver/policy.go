package main

import (
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// limits returns the limits of all tools. The total of a call is the first of these that is set: its timeoutMs, up to
// MaxTotal; the tool's environment variable, such as RUN_COMMAND_TIMEOUT_MS; MCP_TIMEOUT; the value below. The idle
// limit is MCP_IDLE_TIMEOUT or the value below.
func limits(approval time.Duration, logger *slog.Logger) *policy.Policy {
	return &policy.Policy{
		Tools: map[string]policy.Tool{
			// A command has 5 s between SIGTERM and SIGKILL. The rest of the grace leaves time for its
			// output to get into the answer, even on a machine that stalls.
			"run_command": {
				Limits:   &timeout.Config{Total: 10 * time.Minute, Idle: 2 * time.Minute, Grace: 9 * time.Second},
				Env:      "RUN_COMMAND",
				MaxTotal: time.Hour,
			},
			"search": {
				Limits:   &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
				Env:      "SEARCH",
				MaxTotal: 10 * time.Minute,
			},
			// The wait for the person has its own, shorter limit.
			"approve": {
				Limits:   &timeout.Config{Total: approval + time.Minute, Idle: 30 * time.Second},
				Env:      "APPROVE",
				MaxTotal: approval + time.Minute,
			},
			// The limits of hang and deaf are short, so that their effect is soon visible.
			"hang": {
				Limits:   &timeout.Config{Total: time.Minute, Idle: 10 * time.Second},
				Env:      "HANG",
				MaxTotal: 10 * time.Minute,
			},
			"deaf": {
				Limits:   &timeout.Config{Total: time.Minute, Idle: 10 * time.Second, Grace: 2 * time.Second},
				Env:      "DEAF",
				MaxTotal: 10 * time.Minute,
			},
		},
		Logger: logger,
	}
}

// allowTasks makes calls become tasks after soft. It must be called before the policy is used.
func allowTasks(p *policy.Policy, soft time.Duration) {
	for name, t := range p.Tools {
		t.Soft = soft
		p.Tools[name] = t
	}
}

// becomeTasks reports whether calls of any tool may become tasks.
func becomeTasks(p *policy.Policy) bool {
	for name := range p.Tools {
		if soft, _ := p.Soft(name); soft != 0 {
			return true
		}
	}
	return false
}

// readSettings sets the fields of the policy that a YAML or JSON file contains, and keeps the others. It must be called
// before the policy is used.
func readSettings(p *policy.Policy, name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(data, p)
}

// explain logs the limits of each tool, and the source of each limit.
func explain(p *policy.Policy, logger *slog.Logger) {
	for _, tool := range slices.Sorted(maps.Keys(p.Tools)) {
		if limits, err := p.Explain(tool, 0); err == nil {
			logger.Info("limits", slog.String("tool", tool), slog.String("limits", limits))
		}
	}
}

package main

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// limits has the limits of all tools in one place; the tools themselves know nothing of them. The total
// of a call is the first of these that is given: its timeoutMs, up to MaxTotal; the tool's environment
// variable, such as RUN_COMMAND_TIMEOUT_MS; MCP_TIMEOUT; the value below. The idle limit is
// MCP_IDLE_TIMEOUT or the value below.
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
			// Short, so that they are soon seen to be stopped.
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

// longest returns limits with the largest total that any call may have, for the sessions that carry the
// calls. It returns an error for a bad setting in the environment.
func longest(p *policy.Policy) (timeout.Config, error) {
	quiet := *p
	quiet.Logger = nil // each call logs its own warnings
	var most timeout.Config
	for name, t := range p.Tools {
		for _, request := range []time.Duration{0, t.MaxTotal} {
			c, err := quiet.Resolve(name, request)
			if err != nil {
				return timeout.Config{}, err
			}
			if c.Total == 0 { // switched off by the operator
				return timeout.Config{}, nil
			}
			most.Total = max(most.Total, c.Total)
		}
	}
	return most, nil
}

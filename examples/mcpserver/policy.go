package main

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// limits has the limits of all tools in one place; the tools themselves know nothing of
// them. How long a call may take in all is the first of these that is given: its timeoutMs,
// up to MaxTotal; the tool's environment variable, say RUN_COMMAND_TIMEOUT_MS; MCP_TIMEOUT;
// what is written here. How long it may be silent is MCP_IDLE_TIMEOUT, or what is written
// here.
func limits(approval time.Duration, logger *slog.Logger) *policy.Policy {
	return &policy.Policy{
		Tools: map[string]policy.Tool{
			// A command has 5 s between SIGTERM and SIGKILL. What is left of the grace is for what it
			// has printed to be in the answer, on a machine that stands still for a while too.
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
			// The person has a limit of their own, within this one.
			"approve": {
				Limits:   &timeout.Config{Total: approval + time.Minute, Idle: 30 * time.Second},
				Env:      "APPROVE",
				MaxTotal: approval + time.Minute,
			},
			// Short, so that nobody has to wait for long to see them stopped.
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

// allowTasks has each tool's calls become tasks after soft, which must be set before the policy is
// used.
func allowTasks(p *policy.Policy, soft time.Duration) {
	for name, t := range p.Tools {
		t.Soft = soft
		p.Tools[name] = t
	}
}

// longest returns limits with the largest total that any call may have, for the sessions that
// carry them. The error is of a setting in the environment that makes no sense.
func longest(p *policy.Policy) (timeout.Config, error) {
	quiet := *p
	quiet.Logger = nil // each call logs what concerns it
	var most timeout.Config
	for name, t := range p.Tools {
		for _, request := range []time.Duration{0, t.MaxTotal} {
			c, err := quiet.Resolve(name, request)
			if err != nil {
				return timeout.Config{}, err
			}
			if c.Total == 0 { // the operator has switched it off
				return timeout.Config{}, nil
			}
			most.Total = max(most.Total, c.Total)
		}
	}
	return most, nil
}

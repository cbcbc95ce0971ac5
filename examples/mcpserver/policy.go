package main

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// policy has the limits of all tools in one place; the tools themselves know nothing of
// them. How long a call may take in all is the first of these that is given: its timeoutMs,
// up to MaxTotal; the tool's environment variable, say RUN_COMMAND_TIMEOUT_MS; MCP_TIMEOUT;
// what is written here. How long it may be silent is MCP_IDLE_TIMEOUT, or what is written
// here.
func policy(approval time.Duration, logger *slog.Logger) *timeout.Policy {
	return &timeout.Policy{
		Tools: map[string]timeout.Tool{
			"run_command": {
				Config:   timeout.Config{Total: 10 * time.Minute, Idle: 2 * time.Minute},
				Env:      "RUN_COMMAND",
				MaxTotal: time.Hour,
			},
			"search": {
				Config:   timeout.FastTools(),
				Env:      "SEARCH",
				MaxTotal: 10 * time.Minute,
			},
			// The person has a limit of their own, within this one.
			"approve": {
				Config:   timeout.Config{Total: approval + time.Minute, Idle: 30 * time.Second},
				Env:      "APPROVE",
				MaxTotal: approval + time.Minute,
			},
			// Short, so that nobody has to wait for long to see them stopped.
			"hang": {
				Config:   timeout.Config{Total: time.Minute, Idle: 10 * time.Second},
				Env:      "HANG",
				MaxTotal: 10 * time.Minute,
			},
			"deaf": {
				Config:   timeout.Config{Total: time.Minute, Idle: 10 * time.Second, Grace: 2 * time.Second},
				Env:      "DEAF",
				MaxTotal: 10 * time.Minute,
			},
		},
		Logger: logger,
	}
}

// longest gives the largest total of any call that may come, as the limits of a session.
func longest(p *timeout.Policy) (timeout.Config, error) {
	var most timeout.Config
	for name, t := range p.Tools {
		c, err := p.Resolve(name, t.MaxTotal)
		if err != nil {
			return timeout.Config{}, err
		}
		own, err := p.Resolve(name, 0)
		if err != nil {
			return timeout.Config{}, err
		}
		if own.Total == 0 { // the operator has switched it off
			return timeout.Config{}, nil
		}
		most.Total = max(most.Total, c.Total, own.Total)
	}
	return most, nil
}

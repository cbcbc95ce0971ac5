package timeout

import (
	"context"
	"slices"

	"github.com/tooldeadline/tooldeadline/internal/command"
)

// This file implements executions that run a command (SPEC 6.24). Such an execution is stopping from the end of its
// function until command.Conclude and the hooks have returned.

func init() { command.Check, command.Run = checkCommand, runCommand }

func checkCommand(opts any) error {
	var given settings
	for _, o := range opts.([]Option) {
		if o != nil {
			o.apply(&given)
		}
	}
	switch {
	case given.limited:
		return &ConfigError{Key: "WithOptions", Value: "a timeout.Config", Accepted: "the limits of a command as procgroup.Limits"}
	case given.recovers:
		return &ConfigError{Key: "WithOptions", Value: "timeout.WithRecover", Accepted: "options for a command, which has no function that could panic"}
	}
	return nil
}

func runCommand(ctx context.Context, c *command.Command, wait func(context.Context) error, opts any) error {
	_, err := run(ctx, wait, append(slices.Clip(opts.([]Option)), optionFunc(func(s *settings) {
		if s.tool == "" {
			s.tool = c.Name
		}
		s.limits, s.limited = Config{Total: c.Total, Idle: c.Idle, Grace: c.Grace, Reserve: c.Reserve}, true
		s.command, s.operation = &commandRun{Command: c}, OperationCommand
	})))
	return err
}

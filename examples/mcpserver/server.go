package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// newServer returns a server whose calls are all supervised.
func newServer(p *policy.Policy, o options, logger *slog.Logger) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tooldeadline-example", Version: "0"}, nil)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "run_command",
		Description: "Runs a program, with progress for each line that it prints, and returns its exit code and output. It is stopped, with all that it has started, when it has been silent for 2 minutes.",
		InputSchema: runSchema(),
	}, runCommand)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "search",
		Description: "Searches the text files below a directory for lines that match a regular expression.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, search)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "approve",
		Description: "Asks the person at the client to approve an action, and says what was decided.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, newApprover(o.approval).approve)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "hang",
		Description: "Hangs without a sign of life until it is stopped, to show what stops it.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, hang)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "deaf",
		Description: "Ignores for some seconds that it is to stop, to show that the answer comes all the same.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, deaf)

	options := &mcpsdk.Options{
		Policy: p, Tasks: o.tasks, Declare: true, ArgumentTimeout: true, Interval: o.interval,
		Await: progress.Wait{Limit: o.approval, ProgressLimit: o.approval},
		Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
			logger.Info("tool call finished", slog.String("tool", s.Tool),
				slog.Duration("elapsed", s.Elapsed.Round(time.Millisecond)), slog.Int("exit_code", timeout.ExitCode(s.Err)))
		}},
	}
	if o.goesOn > 0 {
		options.Continuation = &mcpsdk.Continuation{After: o.goesOn}
	}
	mcpsdk.Install(s, options)
	s.AddReceivingMiddleware(admit(o.calls, logger), new(sessions).bound(s)) // around the limits
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

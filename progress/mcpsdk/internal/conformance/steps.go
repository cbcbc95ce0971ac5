package main

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
)

// between is how long a step of a tool takes. It is longer than the scenarios require, so that even on a busy machine
// each update is sent before the next replaces it.
const between = 200 * time.Millisecond

// addSteps adds the tools that send progress or log messages while they run. With bare the tool with progress sends its
// notifications itself.
func addSteps(s *mcp.Server, bare bool) {
	report := func(ctx context.Context, _ *mcp.CallToolRequest, u progress.Update) { progress.Report(ctx, u) }
	if bare {
		report = func(ctx context.Context, req *mcp.CallToolRequest, u progress.Update) {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: u.Progress, Total: u.Total,
			})
		}
	}
	add(s, "test_tool_with_progress", func(ctx context.Context, req *mcp.CallToolRequest, _ none) ([]mcp.Content, error) {
		for i := range 3 {
			if i > 0 {
				if err := pause(ctx); err != nil {
					return nil, err
				}
			}
			report(ctx, req, progress.Update{Progress: float64(50 * i), Total: 100})
		}
		return []mcp.Content{say("3 steps done")}, nil
	})
	add(s, "test_tool_with_logging", func(ctx context.Context, req *mcp.CallToolRequest, _ none) ([]mcp.Content, error) {
		for i, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if i > 0 {
				if err := pause(ctx); err != nil {
					return nil, err
				}
			}
			//lint:ignore SA1019 deprecated from 2026-07-28 on; the runner speaks 2025-11-25
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
		}
		return []mcp.Content{say("3 lines logged")}, nil
	})
	add(s, "test_reconnection", func(ctx context.Context, req *mcp.CallToolRequest, _ none) ([]mcp.Content, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: between})
		if err := pause(ctx); err != nil {
			return nil, err
		}
		return []mcp.Content{say("sent after the stream was closed")}, nil
	})
}

func pause(ctx context.Context) error { return sleep(ctx, between) }

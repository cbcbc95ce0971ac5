package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// This file has the tools of examples/mcpserver that the TypeScript clients call as tasks.

func runCommand(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, err := r.RequireString("command")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	res, err := procgroup.Run(ctx, exec.Command(name, r.GetStringSlice("args", nil)...),
		procgroup.Capture{OnePipe: true, Each: procgroup.Lines(func(line string, _ bool) {
			progress.Report(ctx, progress.Update{Message: line})
		})})
	if res == nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	if res.Reason != procgroup.Exited {
		stopped := new(mcp.CallToolResult)
		mcpgo.SetResult(stopped, err, res.Combined.String())
		return stopped, nil
	}
	out := mcp.NewToolResultText(fmt.Sprintf("exit code: %d\n\n%s", res.ExitCode, res.Combined.String()))
	out.IsError = res.ExitCode != 0
	return out, nil
}

func approve(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer := server.ElicitationResponse(r.Params.InputResponses, "approve")
	if answer == nil {
		return server.NewInputRequestBuilder("").Elicit("approve", question("approve", "boolean")).ToolResult(), nil
	}
	decision := "Denied: "
	if content, _ := answer.Content.(map[string]any); answer.Action == mcp.ElicitationResponseActionAccept && content["approve"] == true {
		decision = "Approved: "
	}
	return mcp.NewToolResultText(decision + r.GetString("action", "")), nil
}

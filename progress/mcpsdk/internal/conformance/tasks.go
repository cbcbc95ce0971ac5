package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// soft is the soft limit of those tools whose calls do not become tasks at once.
const soft = 100 * time.Millisecond

// taskHandler serves the tools that the scenarios for tasks call, to clients of protocol 2026-07-28.
func taskHandler() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "tooldeadline-tasks", Version: "1"}, nil)
	add(s, "greet", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Name string `json:"name"`
	}) ([]mcp.Content, error) {
		return []mcp.Content{say("Hello, " + in.Name + "!")}, nil
	})
	raw := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: "A tool of the conformance scenarios.", InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	// The scenarios send more arguments than the tool reads.
	raw("slow_compute", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct {
			Seconds float64 `json:"seconds"`
		}
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		if err := sleep(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{say(fmt.Sprintf("computed for %v s", in.Seconds))}}, nil
	})
	add(s, "failing_job", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) ([]mcp.Content, error) {
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the job has failed")
	})
	raw("protocol_error_job", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the job cannot be done"}
	})
	asks("confirm_delete", raw, map[string]string{"confirm": `{"type":"object","properties":{"confirm":{"type":"boolean"}}}`})
	asks("multi_input", raw, map[string]string{
		"first": `{"type":"object","properties":{"value":{"type":"string"}}}`, "second": `{"type":"object","properties":{"value":{"type":"string"}}}`,
	})
	raw("test_tool_with_task", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["user_name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: question("user_name", `{"type":"object","properties":{"name":{"type":"string"}}}`)}, nil
		}
		if err := sleep(ctx, 5*soft); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{say(fmt.Sprintf("Hello, %v!", answer.Content["name"]))}}, nil
	})

	later, atOnce := policy.Tool{Soft: soft}, policy.Tool{Soft: -1}
	mcpsdk.Install(s, &mcpsdk.Options{Policy: &policy.Policy{
		Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
		Tools: map[string]policy.Tool{
			"slow_compute": later, "failing_job": {Soft: -1, TaskOnly: true}, "protocol_error_job": atOnce,
			"confirm_delete": atOnce, "multi_input": atOnce, "test_tool_with_task": {Soft: soft, TaskOnly: true},
		},
	}, Tasks: &task.Tasks{Poll: 100 * time.Millisecond}})
	return mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
}

func question(key, schema string) mcp.InputRequestMap {
	return mcp.InputRequestMap{key: &mcp.ElicitParams{Mode: "form", Message: "What is the " + key + "?", RequestedSchema: json.RawMessage(schema)}}
}

// asks adds a tool that asks all its questions at once, and returns the answers as its result.
func asks(name string, add func(string, mcp.ToolHandler), schemas map[string]string) {
	add(name, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		open := make(mcp.InputRequestMap)
		for key, schema := range schemas {
			if req.Params.InputResponses[key] == nil {
				open[key] = question(key, schema)[key]
			}
		}
		if len(open) > 0 {
			return &mcp.CallToolResult{InputRequests: open}, nil
		}
		answers, err := json.Marshal(req.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{say("answers: " + string(answers))}}, nil
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Conformance is an MCP server of mcp-go with the tools that the public conformance runner calls in
// its scenarios for tasks, and with those that the TypeScript clients call. It serves Streamable
// HTTP, and prints its URL on stderr, or a client on stdin and stdout.
//
//	conformance [-tasks duration] [-stdio | -http address]
//
// The programs that run it are in the interop directory of the repository.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func main() {
	address := flag.String("http", "127.0.0.1:0", "the `address` to listen on")
	stdio := flag.Bool("stdio", false, "serve one client on stdin and stdout instead")
	soft := flag.Duration("tasks", 100*time.Millisecond, "when the calls become tasks that do not do so at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tasks := &task.Tasks{Poll: 100 * time.Millisecond}
	s := newServer(tasks, *soft)
	var err error
	if *stdio {
		err = mcpgo.Serve(ctx, server.NewStdioServer(s), os.Stdin, os.Stdout, 0)
	} else {
		err = serveHTTP(ctx, s, *address)
	}
	_ = tasks.Close() // ends the tasks that still run
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func serveHTTP(ctx context.Context, s *server.MCPServer, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
	web := &http.Server{Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newServer(tasks *task.Tasks, soft time.Duration) *server.MCPServer {
	s := server.NewMCPServer("tooldeadline-tasks", "1", server.WithToolCapabilities(false), server.WithElicitation())
	later, atOnce := policy.Tool{Soft: soft}, policy.Tool{Soft: -1}
	mcpgo.Install(s, &mcpgo.Options{Policy: &policy.Policy{
		Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
		Tools: map[string]policy.Tool{
			"slow_compute": later, "failing_job": {Soft: -1, TaskOnly: true}, "protocol_error_job": atOnce,
			"confirm_delete": atOnce, "multi_input": atOnce, "test_tool_with_task": {Soft: soft, TaskOnly: true},
			"run_command": later, "approve": atOnce,
		},
	}, Tasks: tasks})
	s.AddTool(mcp.NewTool("run_command", mcp.WithString("command", mcp.Required()), mcp.WithArray("args", mcp.WithStringItems())), runCommand)
	s.AddTool(mcp.NewTool("approve", mcp.WithString("action")), approve)

	s.AddTool(mcp.NewTool("greet", mcp.WithString("name")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("Hello, " + r.GetString("name", "") + "!"), nil
	})
	s.AddTool(mcp.NewTool("slow_compute", mcp.WithNumber("seconds")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seconds := r.GetFloat("seconds", 0)
		return mcp.NewToolResultText(fmt.Sprintf("computed for %v s", seconds)), sleep(ctx, time.Duration(seconds*float64(time.Second)))
	})
	s.AddTool(mcp.NewTool("failing_job"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("the job has failed"), sleep(ctx, time.Second)
	})
	s.AddTool(mcp.NewTool("protocol_error_job"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("the job cannot be done")
	})
	asks(s, "confirm_delete", map[string]string{"confirm": "boolean"})
	asks(s, "multi_input", map[string]string{"first": "string", "second": "string"})
	s.AddTool(mcp.NewTool("test_tool_with_task"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(r.Params.InputResponses, "user_name")
		if answer == nil {
			return server.NewInputRequestBuilder("").Elicit("user_name", question("name", "string")).ToolResult(), nil
		}
		content, _ := answer.Content.(map[string]any)
		return mcp.NewToolResultText(fmt.Sprintf("Hello, %v!", content["name"])), sleep(ctx, 5*soft)
	})
	return s
}

func question(field, kind string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Mode: "form", Message: "What is the " + field + "?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}},
	}}
}

// asks adds a tool that asks all its questions at once, and returns the answers as its result.
func asks(s *server.MCPServer, name string, questions map[string]string) {
	s.AddTool(mcp.NewTool(name), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		open := server.NewInputRequestBuilder("")
		asked := false
		for field, kind := range questions {
			if _, ok := r.Params.InputResponses[field]; !ok {
				open.Elicit(field, question(field, kind))
				asked = true
			}
		}
		if asked {
			return open.ToolResult(), nil
		}
		answers, err := json.Marshal(r.Params.InputResponses)
		return mcp.NewToolResultText("answers: " + string(answers)), err
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

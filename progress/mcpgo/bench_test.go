package mcpgo_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A call of a tool that does nothing, in one process, so that everything else is small.
func BenchmarkCall(b *testing.B) {
	limits := request.Limits{Timeout: never, MaxTotal: never, ResetOnProgress: true}
	for _, bm := range []struct {
		name           string
		server, client bool
		token          any
	}{
		{"plain", false, false, nil},
		{"server", true, false, nil},
		{"server, with a token", true, false, "t"},
		{"client", false, true, nil},
		{"both", true, true, nil},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := server.NewMCPServer("bench", "1")
			if bm.server {
				mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}})
			}
			s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			var t transport.Interface = transport.NewInProcessTransport(s)
			if bm.client {
				t = mcpgo.Limit(t, &request.Options{Limits: &limits, PerMethod: map[string]request.Limits{}})
			}
			c := client.NewClient(t)
			defer c.Close()
			if err := c.Start(context.Background()); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{}); err != nil {
				b.Fatal(err)
			}
			r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "noop"}}
			if bm.token != nil {
				r.Params.Meta = &mcp.Meta{ProgressToken: bm.token}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CallTool(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call of a tool that does nothing, over the pipes of Serve, by a client that declares tasks: what
// it costs that it might have become one.
func BenchmarkCallWithTasks(b *testing.B) {
	const line = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}` + "\n"
	for _, bm := range []struct {
		name  string
		soft  time.Duration
		tasks bool
		after time.Duration // of a continuation
	}{
		{"without", 0, false, 0},
		{"with, no soft limit", 0, true, 0},
		{"with a soft limit", time.Minute, true, 0},
		{"continuation", 0, true, time.Minute},
	} {
		b.Run(bm.name, func(b *testing.B) {
			tasks := new(task.Tasks)
			defer tasks.Close()
			s := server.NewMCPServer("bench", "1")
			o := &mcpgo.Options{Policy: &policy.Policy{Default: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}, Tools: map[string]policy.Tool{"noop": {Soft: bm.soft}}}}
			if bm.tasks {
				o.Tasks = tasks
			}
			if bm.after > 0 {
				o.Continuation = &mcpgo.Continuation{After: bm.after}
			}
			mcpgo.Install(s, o)
			s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			fromClient, toServer, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			fromServer, toClient, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- mcpgo.Serve(context.Background(), server.NewStdioServer(s), fromClient, toClient, 0) }()
			answers := bufio.NewReader(fromServer)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := toServer.WriteString(line); err != nil {
					b.Fatal(err)
				}
				if answer, err := answers.ReadSlice('\n'); err != nil || !bytes.Contains(answer, []byte("done")) {
					b.Fatalf("%s %v", answer, err)
				}
			}
			_ = toServer.Close()
			<-served
			for _, f := range []*os.File{fromClient, fromServer, toClient} {
				_ = f.Close()
			}
		})
	}
}

package mcpgo_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// hang is a tool that is stuck, but looks at its context.
func hang(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return mcp.NewToolResultText("2 of 3 files"), nil
}

// dial connects a client to s in this process.
func dial(s *server.MCPServer, wrap func(transport.Interface) transport.Interface) *client.Client {
	c := client.NewClient(wrap(transport.NewInProcessTransport(s)))
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		panic(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{}); err != nil {
		panic(err)
	}
	return c
}

func plain(t transport.Interface) transport.Interface { return t }

// show calls a tool and prints the result.
func show(c *client.Client, call mcp.CallToolParams) {
	res, err := c.CallTool(context.Background(), mcp.CallToolRequest{Params: call})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, content := range res.Content {
		fmt.Println(content.(mcp.TextContent).Text)
	}
}

func ExampleInstall() {
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: 50 * time.Millisecond}})
	s.AddTool(mcp.NewTool("search"), hang)

	c := dial(s, plain)
	defer c.Close()
	show(c, mcp.CallToolParams{Name: "search"})
	// Output:
	// Tool exceeded wall-clock limit of 0.05s.
	// 2 of 3 files
}

func ExampleHandler() {
	search := func(ctx context.Context, _ mcp.CallToolRequest, args struct{ Pattern string }) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("looked for " + args.Pattern), nil
	}
	s := server.NewMCPServer("files", "1.0.0")
	s.AddTool(mcp.NewTool("search"), mcpgo.Handler(mcp.NewTypedToolHandler(search), nil))

	c := dial(s, plain)
	defer c.Close()
	show(c, mcp.CallToolParams{Name: "search", Arguments: map[string]any{"pattern": "func main"}})
	// Output: looked for func main
}

func ExampleServe() {
	fromHost, toServer := io.Pipe()
	defer toServer.Close()
	fromServer, toHost := io.Pipe()
	defer fromServer.Close()
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, nil)
	ctx, end := context.WithCancel(context.Background()) // with signal.NotifyContext, when the process is told to end
	defer end()
	s.AddTool(mcp.NewTool("search"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: 1})
		<-ctx.Done()
		return mcp.NewToolResultText("found in a.go"), nil
	})
	var host sync.WaitGroup
	host.Go(func() {
		lines, meta := bufio.NewScanner(fromServer), regexp.MustCompile(`"_meta":\{.*?\}\},`)
		show := func() {
			lines.Scan()
			fmt.Println(meta.ReplaceAllString(lines.Text(), ""))
		}
		fmt.Fprintln(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		show()
		fmt.Fprintln(toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","_meta":{"progressToken":7}}}`)
		show()
		end()
		show()
	})
	err := mcpgo.Serve(ctx, server.NewStdioServer(s), fromHost, toHost, 0)
	host.Wait()
	fmt.Println(err)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"files","version":"1.0.0"}}}
	// {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":7}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Tool was aborted: the server is shutting down\nlast: 1"},{"type":"text","text":"found in a.go"}],"isError":true}}
	// <nil>
}

func ExampleWrapHTTP() {
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: 50 * time.Millisecond}})
	s.AddTool(mcp.NewTool("search"), hang)
	var drain toolcall.Drain                                                                   // see there for the end
	hs := httptest.NewServer(drain.Handler(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))) // or http.Server
	defer hs.Close()

	t, err := transport.NewStreamableHTTP(hs.URL)
	if err != nil {
		panic(err)
	}
	c := client.NewClient(t)
	defer c.Close()
	_ = c.Start(context.Background())
	_, _ = c.Initialize(context.Background(), mcp.InitializeRequest{})
	show(c, mcp.CallToolParams{Name: "search"})
	// Output:
	// Tool exceeded wall-clock limit of 0.05s.
	// 2 of 3 files
}

func ExampleOptions_argumentTimeout() {
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"search": {MaxTotal: time.Minute}}}, ArgumentTimeout: true})
	s.AddTool(mcp.NewTool("search", mcp.WithNumber("timeoutMs")), hang)

	c := dial(s, plain)
	defer c.Close()
	show(c, mcp.CallToolParams{Name: "search", Arguments: map[string]any{"timeoutMs": -1}})
	// Output: timeout: timeoutMs="-1": want milliseconds as a whole number from 1 to 9223372036854, such as 120000
}

// A tool that has limits of its own, for a part of its work.
func ExampleSetResult() {
	build := func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		output := ""
		err := timeout.Run(ctx, func(ctx context.Context) error {
			output = "compiling a.go"
			<-ctx.Done()
			return ctx.Err()
		}, timeout.Config{Total: 50 * time.Millisecond})
		res := new(mcp.CallToolResult)
		mcpgo.SetResult(res, err, output)
		return res, nil
	}
	res, err := build(context.Background(), mcp.CallToolRequest{})
	fmt.Println(res.Content[0].(mcp.TextContent).Text)
	fmt.Println(res.IsError, res.Meta.AdditionalFields[toolcall.OutcomeKey].(toolcall.Outcome).ExitCode, err)
	// Output:
	// Tool exceeded wall-clock limit of 0.05s.
	//
	// Partial output:
	// compiling a.go
	// true 124 <nil>
}

// A person who says yes, later than the idle limit allows.
type person struct{}

func (person) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	time.Sleep(800 * time.Millisecond)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}, nil
}

func ExampleElicit() {
	s := server.NewMCPServer("files", "1.0.0", server.WithElicitation())
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Idle: 500 * time.Millisecond}})
	s.AddTool(mcp.NewTool("delete"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "rm -r build", RequestedSchema: map[string]any{"type": "object"},
		}}, progress.Wait{Limit: 2 * time.Minute, ProgressLimit: 2 * time.Minute})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(string(answer.Action)), nil
	})

	c, err := client.NewInProcessClientWithOptions(s, client.WithElicitationHandler(person{}))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_ = c.Start(context.Background())
	_, _ = c.Initialize(context.Background(), mcp.InitializeRequest{})
	show(c, mcp.CallToolParams{Name: "delete"})
	// Output: accept
}

// The client's model may take longer than the idle limit.
func ExampleSample() {
	s := server.NewMCPServer("files", "1.0.0")
	s.EnableSampling()
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Idle: 500 * time.Millisecond}})
	s.AddTool(mcp.NewTool("summary"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := mcpgo.Sample(ctx, mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{MaxTokens: 100}},
			progress.Wait{Limit: 30 * time.Second, ProgressLimit: 5 * time.Minute})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(answer.Model), nil
	})

	c, err := client.NewInProcessClientWithOptions(s, client.WithSamplingHandler(model{}))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_ = c.Start(context.Background())
	_, _ = c.Initialize(context.Background(), mcp.InitializeRequest{})
	show(c, mcp.CallToolParams{Name: "summary"})
	// Output: a model
}

// A model takes longer than the idle limit.
type model struct{}

func (model) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	time.Sleep(800 * time.Millisecond)
	return &mcp.CreateMessageResult{Model: "a model", SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("3 files")}}, nil
}

// A tool that returns its question works with clients of all protocols.
func ExampleOptions_await() {
	s := server.NewMCPServer("files", "1.0.0", server.WithElicitation())
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Idle: 500 * time.Millisecond}, Await: progress.Wait{Limit: 2 * time.Minute, ProgressLimit: 2 * time.Minute}})
	s.AddTool(mcp.NewTool("delete"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(r.Params.InputResponses, "sure")
		if answer == nil {
			return server.NewInputRequestBuilder("").Elicit("sure", mcp.ElicitationParams{
				Message: "rm -r build", RequestedSchema: map[string]any{"type": "object"},
			}).ToolResult(), nil
		}
		return mcp.NewToolResultText(string(answer.Action)), nil
	})
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		c, err := client.NewInProcessClientWithOptions(s, client.WithElicitationHandler(person{}), client.WithProtocolVersion(protocol))
		if err != nil {
			panic(err)
		}
		_ = c.Start(context.Background())
		_, _ = c.Initialize(context.Background(), mcp.InitializeRequest{})
		show(c, mcp.CallToolParams{Name: "delete"})
		_ = c.Close()
	}
	// Output:
	// accept
	// accept
}

func ExampleOptions_continuation() {
	s := server.NewMCPServer("files", "1.0.0")
	// For a host that waits for 60 s, and renews nothing, 45 s would do.
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: time.Hour}, Continuation: &mcpgo.Continuation{After: 500 * time.Millisecond}})
	indexed := make(chan bool)
	s.AddTool(mcp.NewTool("index"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-indexed
		return mcp.NewToolResultText("3 files"), nil
	})

	c := dial(s, plain)
	defer c.Close()
	res, _ := c.CallTool(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "index"}})
	text := res.Content[0].(mcp.TextContent).Text
	id := regexp.MustCompile(`"id": "(.*)"`).FindStringSubmatch(text)[1]
	fmt.Println(strings.ReplaceAll(text, id, "…")) // the model reads it
	close(indexed)
	show(c, mcp.CallToolParams{Name: "wait_for_result", Arguments: map[string]any{"id": id}})
	// Output:
	// Still running after 0.5s.
	// Call wait_for_result with {"id": "…"} to wait for the result.
	// 3 files
}

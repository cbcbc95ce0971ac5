package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
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

func ExampleLimit() {
	s := server.NewMCPServer("files", "1.0.0")
	s.AddTool(mcp.NewTool("search"), hang)

	c := dial(s, func(t transport.Interface) transport.Interface {
		return mcpgo.Limit(t, &request.Options{PerMethod: map[string]request.Limits{
			"tools/call": {Timeout: 50 * time.Millisecond, MaxTotal: time.Minute, ResetOnProgress: true},
		}})
	})
	defer c.Close()
	_, err := c.CallTool(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "search"}})
	var stop *request.Error
	fmt.Println(errors.As(err, &stop), request.CodeTimeout, stop.Message())
	var e *timeout.Error
	fmt.Println(errors.As(err, &e), e.Kind, e.Limit, e.Tool)
	// Output:
	// true -32001 Request timed out
	// true idle 50ms tools/call
}

func ExampleLimit_request() {
	s := server.NewMCPServer("files", "1.0.0")
	s.AddTool(mcp.NewTool("search"), hang)

	c := dial(s, func(t transport.Interface) transport.Interface {
		return mcpgo.Limit(t, nil)
	})
	defer c.Close()
	ctx := request.WithLimits(context.Background(), request.Limits{MaxTotal: 50 * time.Millisecond})
	_, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "search"}})
	fmt.Println(err)
	// Output: transport error: calling "tools/call": Maximum total timeout exceeded: 50ms
}

func ExampleLimit_hooks() {
	s := server.NewMCPServer("files", "1.0.0")
	s.AddTool(mcp.NewTool("search"), hang)

	c := dial(s, func(t transport.Interface) transport.Interface {
		limits := map[string]request.Limits{"tools/call": {Timeout: 50 * time.Millisecond}}
		return mcpgo.Limit(t, &request.Options{PerMethod: limits, Hooks: timeout.Hooks{
			Exceeded: func(_ context.Context, s timeout.Snapshot) { fmt.Println(s.Operation, s.Tool, s.Limits.Idle) },
		}})
	})
	defer c.Close()
	_, _ = c.CallTool(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "search"}})
	// Output: request tools/call 50ms
}

func ExampleLimit_retry() {
	s := server.NewMCPServer("files", "1.0.0")
	lists := 0
	s.AddTool(mcp.NewTool("search"), hang)
	server.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
		if lists++; lists == 1 {
			<-ctx.Done() // lost
		}
		return tools
	})(s)

	c := dial(s, func(t transport.Interface) transport.Interface {
		limits := map[string]request.Limits{"tools/list": {Timeout: 500 * time.Millisecond}}
		return mcpgo.Limit(t, &request.Options{PerMethod: limits, Retry: []string{"tools/list", "resources/*"}, Backoff: request.Backoff{First: 10 * time.Millisecond}})
	})
	defer c.Close()
	res, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
	fmt.Println(len(res.Tools), err, lists)
	// Output: 1 <nil> 2
}

func ExampleConnect() {
	s := server.NewMCPServer("files", "1.0.0")
	tries := 0
	open := func() (*client.Client, error) {
		if tries++; tries == 1 {
			return nil, errors.New("the server is not up yet")
		}
		return client.NewInProcessClient(s)
	}
	c, result, err := mcpgo.Connect(context.Background(), open, mcp.InitializeRequest{},
		&mcpgo.ConnectOptions{Timeout: 5 * time.Second, Backoff: request.Backoff{First: 10 * time.Millisecond}})
	fmt.Println(result.ServerInfo.Name, err, tries)
	_ = c.Close()
	// Output: files <nil> 2
}

func ExampleLimit_declared() {
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: time.Hour}, Declare: true})
	s.AddTool(mcp.NewTool("search"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		left, _ := timeout.Remaining(ctx)
		return mcp.NewToolResultText(left.Round(10 * time.Second).String()), nil
	})

	c := dial(s, func(t transport.Interface) transport.Interface {
		ceiling := request.Limits{Timeout: 10 * time.Minute} // what the user would ever wait
		return mcpgo.Limit(t, &request.Options{PerMethod: map[string]request.Limits{}, Declared: &ceiling})
	})
	defer c.Close()
	res, err := c.CallTool(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "search"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Content[0].(mcp.TextContent).Text) // the server knows how long the client waits, and answers before that
	// Output: 9m50s
}

func ExampleOptions_idempotency() {
	s := server.NewMCPServer("shop", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Idempotency: true})
	orders := 0
	s.AddTool(mcp.NewTool("order", mcp.WithIdempotentHintAnnotation(true)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		orders++
		return mcp.NewToolResultText(fmt.Sprint("order ", orders)), nil
	})
	c := dial(s, func(t transport.Interface) transport.Interface { return t })
	defer c.Close()
	for range 2 { // as Retry does where it has no answer
		show(c, mcp.CallToolParams{Name: "order", Meta: &mcp.Meta{AdditionalFields: map[string]any{request.IdempotencyKey: "a random string"}}})
	}
	// Output:
	// order 1
	// order 1
}

func ExampleOptions_methods() {
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Declare: true, Methods: map[string]policy.Declaration{"resources/*": {Total: time.Minute}}})
	c := dial(s, func(t transport.Interface) transport.Interface { return t })
	defer c.Close()
	declared, _ := policy.ReadDeclaration(c.GetServerCapabilities().Extensions)
	limits, _ := declared.Method("resources/read")
	fmt.Println(limits.Total)
	// Output: 1m0s
}

func ExampleLimit_followTasks() {
	tasks := &task.Tasks{Poll: 10 * time.Millisecond}
	defer tasks.Close()
	s := server.NewMCPServer("files", "1.0.0")
	mcpgo.Install(s, &mcpgo.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"index": {Soft: 20 * time.Millisecond}}}, Tasks: tasks})
	s.AddTool(mcp.NewTool("index"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(100 * time.Millisecond) // or an hour: no request takes that long
		return mcp.NewToolResultText("3 files"), nil
	})
	hs := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
	defer hs.Close()

	t, err := transport.NewStreamableHTTP(hs.URL)
	if err != nil {
		panic(err)
	}
	c := client.NewClient(mcpgo.Limit(t, &request.Options{FollowTasks: true}))
	defer c.Close()
	_ = c.Start(context.Background())
	_, _ = c.Initialize(context.Background(), mcp.InitializeRequest{})
	show(c, mcp.CallToolParams{Name: "index"})
	// Output: 3 files
}

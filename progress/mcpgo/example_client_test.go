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

package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// exampleServer has a tool that works for a while and reports progress, and one that
// never answers.
func exampleServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
	schema := map[string]any{"type": "object"}
	s.AddTool(&mcp.Tool{Name: "build", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 5 {
			time.Sleep(150 * time.Millisecond)
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 5,
			})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "built"}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "hang", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return s
}

// dial is the client's end of a connection to s in memory.
func dial(s *mcp.Server) mcp.Transport {
	client, server := mcp.NewInMemoryTransports()
	if _, err := s.Connect(context.Background(), server, nil); err != nil {
		panic(err)
	}
	return client
}

func connected(c *mcp.Client, t mcp.Transport) *mcp.ClientSession {
	session, err := c.Connect(context.Background(), t, nil)
	if err != nil {
		panic(err)
	}
	return session
}

// A call may take as long as it likes while it makes progress, and is given up when it
// goes silent.
func ExampleLimit() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{PerMethod: map[string]request.Limits{
		"tools/call":  {Timeout: 700 * time.Millisecond, MaxTotal: time.Minute, ResetOnProgress: true},
		"resources/*": {Timeout: 10 * time.Second},
	}})
	ctx := context.Background()
	session := connected(client, dial(exampleServer()))
	defer session.Close()

	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "build"}) // 750 ms
	fmt.Println(res.Content[0].(*mcp.TextContent).Text, err)

	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
	var answer *jsonrpc.Error
	if errors.As(err, &answer) {
		fmt.Println(answer.Code, answer.Message)
	}
	var stop *timeout.Error
	if errors.As(err, &stop) {
		fmt.Println(stop.Tool, stop.Kind, stop.Limit)
	}
	// Output:
	// built <nil>
	// -32001 Request timed out
	// tools/call idle 700ms
}

func ExampleLimit_request() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{PerMethod: map[string]request.Limits{}})
	session := connected(client, dial(exampleServer()))
	defer session.Close()

	ctx := request.WithLimits(context.Background(), request.Limits{MaxTotal: 50 * time.Millisecond})
	_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
	fmt.Println(err)
	// Output: calling "tools/call": Maximum total timeout exceeded: 50ms
}

// A program counts the requests that its limits have stopped.
func ExampleLimit_hooks() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{Limits: &request.Limits{Timeout: 50 * time.Millisecond}, Hooks: timeout.Hooks{
		Exceeded: func(_ context.Context, s timeout.Snapshot) { fmt.Println(s.Operation, s.Tool, s.Limits.Total) },
	}})
	session := connected(client, dial(exampleServer()))
	defer session.Close()
	ctx := request.WithLimits(context.Background(), request.Limits{MaxTotal: 50 * time.Millisecond})
	_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
	// Output: request tools/call 50ms
}

func ExampleLimit_reference() {
	limits := request.DefaultLimits()
	limits["tools/call"] = request.Limits{Timeout: 2 * time.Minute, ResetOnProgress: true}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{PerMethod: limits})
	fmt.Println(limits["initialize"].Timeout)
	// Output: 5s
}

// A server that is not up yet is tried again.
func ExampleConnect() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	tries := 0
	session, err := mcpsdk.Connect(context.Background(), client, func() (mcp.Transport, error) {
		// For a server over stdio:
		//	return &mcp.CommandTransport{Command: exec.Command("my-server")}, nil
		if tries++; tries == 1 {
			return nil, errors.New("not up yet")
		}
		return dial(exampleServer()), nil
	}, &mcpsdk.ConnectOptions{Backoff: request.Backoff{First: 10 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	fmt.Println("connected at try", tries)
	// Output: connected at try 2
}

// A program that has several servers goes on without those that are away, and learns when one comes.
func ExampleConnect_standing() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	ctx, stop := context.WithCancel(context.Background()) // until the program says otherwise
	go func() {
		session, err := mcpsdk.Connect(ctx, client, func() (mcp.Transport, error) { return dial(exampleServer()), nil },
			&mcpsdk.ConnectOptions{
				Tools:  func(tools []*mcp.Tool) { fmt.Println(len(tools), "tools") },
				Failed: func(err error) bool { fmt.Println(err); return true }, // again in 30 s
			})
		if err == nil {
			defer session.Close()
		}
		stop()
	}()
	<-ctx.Done()
	// Output: 2 tools
}

func ExampleLimit_retry() {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	limits := map[string]request.Limits{"tools/list": {Timeout: 500 * time.Millisecond}}
	mcpsdk.Limit(client, &request.Options{PerMethod: limits, Retry: []string{"tools/list", "resources/*"}, Backoff: request.Backoff{First: 10 * time.Millisecond}})

	server := exampleServer()
	tries := 0
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				if tries++; tries == 1 {
					<-ctx.Done() // does not answer the first time
				}
			}
			return next(ctx, method, req)
		}
	})
	session := connected(client, dial(server))
	defer session.Close()
	tools, err := session.ListTools(context.Background(), nil)
	fmt.Println(len(tools.Tools), err)
	// Output: 2 <nil>
}

// A call that comes again is answered with the result of the first.
func ExampleOptions_idempotency() {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
	mcpsdk.Install(server, &mcpsdk.Options{Idempotency: true})
	orders := 0
	server.AddTool(&mcp.Tool{Name: "order", InputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{IdempotentHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			orders++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("order ", orders)}}}, nil
		})
	session := connected(mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil), dial(server))
	defer session.Close()
	for range 2 { // as Retry does where it has no answer
		params := &mcp.CallToolParams{Name: "order", Meta: mcp.Meta{request.IdempotencyKey: "a random string"}}
		res, err := session.CallTool(context.Background(), params)
		fmt.Println(res.Content[0].(*mcp.TextContent).Text, err)
	}
	// Output:
	// order 1 <nil>
	// order 1 <nil>
}

// A client that waits for each tool as long as its server says, and never longer than it wants to.
func ExampleLimit_declared() {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(300 * time.Millisecond)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "indexed"}}}, nil
		})
	p := &policy.Policy{Tools: map[string]policy.Tool{"index": {Limits: &timeout.Config{Total: 10 * time.Minute}}}}
	mcpsdk.Install(server, &mcpsdk.Options{Policy: p, Declare: true})

	limits := request.DefaultLimits()
	delete(limits, "tools/call") // or it would go before what is declared
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{Limits: &request.Limits{Timeout: 100 * time.Millisecond}, PerMethod: limits, Declared: &request.Limits{Timeout: 5 * time.Minute, MaxTotal: time.Hour}})

	ctx := context.Background()
	session := connected(client, dial(server))
	defer session.Close()
	if _, err := session.ListTools(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "index"})
	fmt.Println(res.Content[0].(*mcp.TextContent).Text, err)
	// Output: indexed <nil>
}

// A server says how long its resources may take to read.
func ExampleOptions_methods() {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
	mcpsdk.Install(server, &mcpsdk.Options{Declare: true, Methods: map[string]policy.Declaration{"resources/*": {Total: time.Minute}}})
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	session := connected(client, dial(server))
	defer session.Close()
	declared, _ := policy.ReadDeclaration(session.InitializeResult().Capabilities.Extensions)
	limits, _ := declared.Method("resources/read")
	fmt.Println(limits.Total)
	// Output: 1m0s
}

// A server may answer with a task. The call then just takes longer, and its cancellation is the
// task's.
func ExampleLimit_followTasks() {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
	server.AddTool(&mcp.Tool{Name: "build", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(200 * time.Millisecond)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "built"}}}, nil
		})
	tasks := &task.Tasks{Poll: 50 * time.Millisecond}
	defer tasks.Close()
	p := &policy.Policy{Tools: map[string]policy.Tool{"build": {Soft: -1}}} // a task at once
	mcpsdk.Install(server, &mcpsdk.Options{Policy: p, Tasks: tasks})

	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
	mcpsdk.Limit(client, &request.Options{FollowTasks: true})
	session := connected(client, mcpsdk.WrapClientTransport(dial(server)))
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for the whole
	defer cancel()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "build"})
	fmt.Println(res.Content[0].(*mcp.TextContent).Text, err)
	// Output: built <nil>
}

// Over HTTP it is the transport that is wrapped, too.
func ExampleWrapClientTransport() {
	transport := mcpsdk.WrapClientTransport(&mcp.StreamableClientTransport{Endpoint: "http://127.0.0.1:8137/mcp"})
	_, streamable := transport.(*mcp.StreamableClientTransport)
	fmt.Println(streamable)
	// Output: true
}

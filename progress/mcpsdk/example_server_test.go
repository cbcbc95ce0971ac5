package mcpsdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type indexInput struct {
	Files     []string `json:"files"`
	TimeoutMs int      `json:"timeoutMs,omitempty"`
}

// index is a tool that says how far it is, and hangs when it comes to "hang".
func index(ctx context.Context, _ *mcp.CallToolRequest, in indexInput) (*mcp.CallToolResult, any, error) {
	for i, file := range in.Files {
		progress.Report(ctx, progress.Update{Progress: float64(i), Total: float64(len(in.Files)), Message: file})
		if file == "hang" {
			<-ctx.Done()
			return textResult("indexed " + strings.Join(in.Files[:i], ", ")), nil, nil
		}
	}
	return textResult("indexed " + strings.Join(in.Files, ", ")), nil, nil
}

// ask connects a client, calls "index" once and prints the result.
func ask(server *mcp.Server, opts *mcp.ClientOptions, p *mcp.CallToolParams) {
	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	askOver(serverEnd, clientEnd, server, opts, p)
}

func askOver(serverEnd, clientEnd mcp.Transport, server *mcp.Server, opts *mcp.ClientOptions, p *mcp.CallToolParams) {
	ctx := context.Background()
	ss, err := server.Connect(ctx, serverEnd, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts).
		Connect(ctx, clientEnd, &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ss.Wait()
	defer cs.Close()
	p.Name = "index"
	res, err := cs.CallTool(ctx, p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("isError:", res.IsError)
	for _, text := range texts(res) {
		fmt.Println(text)
	}
}

func files(names ...string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Arguments: map[string]any{"files": names}}
}

// One line makes every tool of a server safe.
func ExampleInstall() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, index)
	mcpsdk.Install(server, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute, Idle: time.Second}})

	ask(server, nil, files("a.go", "b.go", "hang"))
	// Output:
	// isError: true
	// No progress for 1s (idle timeout). Tool should call heartbeat() during long work.
	// last: hang 2 of 3
	// indexed a.go, b.go
}

func ExampleHandler() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, mcpsdk.Handler(index, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute}}))

	ask(server, nil, files("a.go", "b.go"))
	// Output:
	// isError: false
	// indexed a.go, b.go
}

// A tool of one's own making answers as one under Install does.
func ExampleSetResult() {
	res := new(mcp.CallToolResult)
	err := timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil },
		timeout.Config{Total: 20 * time.Millisecond})
	mcpsdk.SetResult(res, err, "page 1 of 3")

	fmt.Println(res.IsError)
	fmt.Println(texts(res)[0])
	outcome := res.Meta[toolcall.OutcomeKey].(toolcall.Outcome)
	fmt.Println(outcome.Kind, outcome.ExitCode, outcome.Limit, "ms")
	// Output:
	// true
	// Tool exceeded wall-clock limit of 0.02s.
	//
	// Partial output:
	// page 1 of 3
	// total 124 20 ms
}

// A client that shows progress.
func ExampleOptions_interval() {
	shown := make(chan bool)
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			progress.Report(ctx, progress.Update{Progress: float64(i + 1), Total: 3, Message: "indexing"})
			<-shown
		}
		return textResult("done"), nil
	})
	mcpsdk.Install(server, &mcpsdk.Options{Interval: 10 * time.Millisecond})

	p := &mcp.CallToolParams{}
	p.SetProgressToken("bar-1")
	ask(server, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		fmt.Printf("%s: %v of %v\n", req.Params.Message, req.Params.Progress, req.Params.Total)
		shown <- true
	}}, p)
	// Output:
	// indexing: 1 of 3
	// indexing: 2 of 3
	// indexing: 3 of 3
	// isError: false
	// done
}

// A person does not answer.
func ExampleOptions_await() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "reading /etc"})
		if err != nil {
			return nil, err
		}
		return textResult(answer.Action), nil
	})
	mcpsdk.Install(server, &mcpsdk.Options{Await: progress.Wait{Limit: 50 * time.Millisecond, ProgressLimit: 50 * time.Millisecond}})

	ask(server, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, &mcp.CallToolParams{})
	// Output:
	// isError: true
	// Command timed out waiting for approval. Consider approving faster or configuring a longer timeout.
}

// The client's model may take its time, and the tool says for whom it waits.
func ExampleOptions_requests() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		answer, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 100})
		if err != nil {
			return nil, err
		}
		return textResult(answer.Model), nil
	})
	mcpsdk.Install(server, &mcpsdk.Options{Requests: &progress.Wait{Limit: 50 * time.Millisecond, ProgressLimit: 5 * time.Minute}})

	//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
	ask(server, &mcp.ClientOptions{CreateMessageHandler: func(ctx context.Context, _ *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, &mcp.CallToolParams{})
	// Output:
	// isError: true
	// Command timed out waiting for an answer of the model. Consider configuring a longer timeout.
}

func ExampleOptions_argumentTimeout() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, index) // declares timeoutMs
	mcpsdk.Install(server, &mcpsdk.Options{ArgumentTimeout: true})

	ask(server, nil, &mcp.CallToolParams{Arguments: indexInput{Files: []string{"a.go", "hang"}, TimeoutMs: 1000}})
	ask(server, nil, &mcp.CallToolParams{Arguments: indexInput{Files: []string{"a.go"}, TimeoutMs: -1}})
	// Output:
	// isError: true
	// Tool exceeded wall-clock limit of 1s.
	// last: hang 1 of 2
	// indexed a.go
	// isError: true
	// timeout: timeoutMs="-1": want milliseconds as a whole number from 1 to 9223372036854, such as 120000
}

// A token that a float64 does not hold.
func ExampleWrapTransport() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: anyInput}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textResult(fmt.Sprint("the token is ", req.Params.GetProgressToken())), nil
	})
	mcpsdk.Install(server, nil)

	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	p := &mcp.CallToolParams{Meta: mcp.Meta{"progressToken": json.Number("9007199254740993")}}
	askOver(mcpsdk.WrapTransport(serverEnd), clientEnd, server, nil, p)
	// Output:
	// isError: false
	// the token is 9007199254740993
}

// A server over HTTP whose sessions outlive the tools that they carry (SPEC 2.10).
func ExampleWrapHTTP() {
	limits, _, err := timeout.FromEnv(func(string) (string, bool) { return "", false })
	if err != nil {
		fmt.Println(err)
		return
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, index)
	mcpsdk.Install(server, &mcpsdk.Options{Limits: &limits})
	options := &mcp.StreamableHTTPOptions{SessionTimeout: limits.SessionTimeout()}
	handler := mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options))

	rec := httptest.NewRecorder()
	req := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	handler.ServeHTTP(rec, req)
	fmt.Println(rec.Code, options.SessionTimeout)
	for session := range server.Sessions() {
		session.Close()
	}
	// Output: 200 30m30s
}

// The end of a server, here because its context ends, elsewhere with signal.NotifyContext: the
// client has its answer before the connection is closed.
func ExampleServe() {
	ctx, end := context.WithCancel(context.Background())
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		end()
		<-ctx.Done()
		return textResult("indexed a.go"), nil
	})
	mcpsdk.Install(server, nil)

	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	served := make(chan error)
	go func() { served <- mcpsdk.Serve(ctx, server, serverEnd, 0) }()

	client, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(context.Background(), clientEnd, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	res, err := client.CallTool(context.Background(), &mcp.CallToolParams{Name: "index"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(texts(res))
	fmt.Println(<-served)
	// Output:
	// [Tool was aborted: the server is shutting down indexed a.go]
	// <nil>
}

// Clients that look at it learn from tools/list how long a call may take.
func ExampleOptions_declare() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, index)
	p := &policy.Policy{Default: &timeout.Config{Total: 10 * time.Minute, Idle: 2 * time.Minute}}
	mcpsdk.Install(server, &mcpsdk.Options{Policy: p, Declare: true})

	ctx := context.Background()
	session := connected(mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil), dial(server))
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	declared, _ := json.Marshal(tools.Tools[0].Meta)
	fmt.Println(string(declared))
	// Output: {"io.github.tooldeadline/limits":{"graceMs":7000,"idleMs":120000,"progressMs":10000,"totalMs":600000}}
}

// A host that gives a call 60 s and renews nothing gets an answer before, and its model reads what to do.
func ExampleOptions_continuation() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "index", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			time.Sleep(2 * time.Second)
			return textResult("indexed"), nil
		})
	mcpsdk.Install(server, &mcpsdk.Options{Continuation: &mcpsdk.Continuation{After: 200 * time.Millisecond}}) // 45 s for such a host

	ctx := context.Background()
	session := connected(mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil), dial(server))
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "index"})
	if err != nil {
		fmt.Println(err)
		return
	}
	unfinished := res.Meta[task.ContinuationKey].(map[string]any)
	fmt.Println(strings.ReplaceAll(texts(res)[0], unfinished["id"].(string), "..."))

	for unfinished != nil { // as the model would
		res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "wait_for_result", Arguments: map[string]any{"id": unfinished["id"]}})
		if err != nil {
			fmt.Println(err)
			return
		}
		unfinished, _ = res.Meta[task.ContinuationKey].(map[string]any)
	}
	fmt.Println(texts(res)[0])
	// Output:
	// Still running after 0.2s.
	// main.go 3 of 10
	// Call wait_for_result with {"id": "..."} to wait for the result.
	// indexed
}

// A server behind a proxy that ends every response after 60 s, however much comes on it.
func ExamplePoll() {
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "index"}, index)
	mcpsdk.Install(server, nil)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	_ = stream.KeepAlive(mcpsdk.WrapHTTP(mcpsdk.Poll(handler, 50*time.Second)), 0)
	// Output:
}

package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The reader of a connection goes on while a handler is slow.
func ExampleQueue() {
	var handlers adapter.Queue
	done := make(chan struct{})
	for i := range 3 {
		handlers.Add("session", func() {
			time.Sleep(10 * time.Millisecond)
			fmt.Println("progress", i)
			if i == 2 {
				close(done)
			}
		})
	}
	fmt.Println("read")
	<-done
	// Output:
	// read
	// progress 0
	// progress 1
	// progress 2
}

func ExampleDeclarations() {
	c := request.New(request.Limits{Timeout: request.DefaultTimeout}, nil)
	ceiling := request.Limits{Timeout: 10 * time.Minute, MaxTotal: time.Hour}

	var server adapter.Declarations
	// The result of tools/list.
	server.Tool("index", map[string]any{policy.DeclarationKey: map[string]any{"totalMs": 20.0, "idleMs": 0.0}})

	call := request.Call{Method: "tools/call", Declared: server.Limits("tools/call", "index", ceiling)}
	fmt.Println(call.Declared.MaxTotal)
	answer, err := request.Do(context.Background(), c, call, func(context.Context, string) (string, error) { return "done", nil })
	fmt.Println(answer, err)
	// Output:
	// 1.02s
	// done <nil>
}

// A server that answers the tool's own errors in its own way asks whose an error is.
func ExampleForeign() {
	for _, tool := range []func(context.Context) (string, error){
		func(context.Context) (string, error) { return "", errors.New("no such file") },
		func(context.Context) (string, error) { panic("boom") },
	} {
		_, err := toolcall.Do(context.Background(), nil, toolcall.Call{Tool: "read"}, tool)
		fmt.Println(adapter.Foreign(err))
	}
	// Output:
	// false
	// true
}

func ExampleSessions() {
	var sessions adapter.Sessions
	ctx, release := sessions.Join(context.Background(), "session 1")
	defer release()

	go sessions.Abort("session 1", toolcall.ErrDisconnected) // where the server learns of it
	_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	fmt.Println(err)
	// Output: Tool was aborted: the client has disconnected
}

func ExampleAwaitAnswer() {
	answer, err := adapter.AwaitAnswer(context.Background(), nil, "sign in to read issues", "https://example.com/login",
		progress.Wait{}, func(context.Context) (string, error) { return "accept", nil })
	fmt.Println(answer, err)
	// Output: accept <nil>
}

func ExampleAwaitReply() {
	wait := progress.Wait{Limit: 10 * time.Millisecond}
	_, err := adapter.AwaitReply(context.Background(), nil, "roots/list", wait, func(ctx context.Context) (string, error) {
		<-ctx.Done() // the client does not reply
		return "", ctx.Err()
	})
	fmt.Println(err)
	// Output: Command timed out waiting for the client's list of roots. Consider configuring a longer timeout.
}

func ExampleCancelledReader() {
	var message adapter.CancelledReader
	fmt.Fprint(&message, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"Request timed out"}}`)
	if id, cause, ok := message.Cancelled(); ok {
		fmt.Println(id, cause, errors.Is(cause, toolcall.ErrClientTimeout))
	}
	// Output: 7 the client has cancelled the call: Request timed out true
}

func ExampleCancelled() {
	id, cause, ok := adapter.Cancelled([]byte(`{"requestId":"a","reason":"User requested cancellation"}`))
	fmt.Println(id, errors.Is(cause, toolcall.ErrStopped), ok)
	// Output: a true true
}

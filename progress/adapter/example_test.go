package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func ExampleSessions() {
	var sessions adapter.Sessions
	ctx, release := sessions.Join(context.Background(), "session 1", nil)
	defer release()

	go sessions.Abort("session 1", nil, toolcall.ErrDisconnected) // where the server learns of it
	_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	fmt.Println(err)
	// Output: Tool was aborted: the client has disconnected
}

func ExampleAwait() {
	answer, err := adapter.Await(context.Background(), nil, "elicitation/create", "sign in to read issues", "https://example.com/login",
		progress.Wait{}, func(context.Context) (string, error) { return "accept", nil })
	fmt.Println(answer, err)
	// Output: accept <nil>
}

func ExampleAwait_reply() {
	wait := progress.Wait{Limit: 10 * time.Millisecond}
	_, err := adapter.Await(context.Background(), nil, "roots/list", "", "", wait, func(ctx context.Context) (string, error) {
		<-ctx.Done() // the client does not reply
		return "", ctx.Err()
	})
	fmt.Println(err)
	// Output: Command timed out waiting for the client's list of roots. Consider configuring a longer timeout.
}

func ExampleCancelled() {
	message := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"Request timed out"}}`
	if id, cause, ok := adapter.Cancelled([]byte(message)); ok {
		fmt.Println(id, cause, errors.Is(cause, toolcall.ErrClientTimeout))
	}
	// Output: 7 the client has cancelled the call: Request timed out true
}

// What an adapter makes of its options: a copy, and the settings of each call.
func ExampleNewServer() {
	o := &adapter.Options{Limits: &timeout.Config{Total: 10 * time.Millisecond}, Idempotency: true}
	s := adapter.NewServer(o, false)
	calls, _ := s.Settings("index")
	_, err := toolcall.Do(context.Background(), calls, toolcall.Call{Tool: "index"}, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	fmt.Println(s.Idempotency, err)
	// Output: true Tool exceeded wall-clock limit of 0.01s.
}

// A Handler has no use for what only a server does.
func ExampleNewServer_handler() {
	defer func() { fmt.Println(recover()) }()
	adapter.NewServer(&adapter.Options{Hosts: true, Idempotency: true}, true)
	// Output: timeout: Options.Hosts="set for a Handler": want a field of the Options of Install
}

package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// search is a tool that finds two files and then hangs.
func search(ctx context.Context) (string, error) {
	progress.Report(ctx, progress.Update{Progress: 2, Total: 10, Message: "b.go"})
	<-ctx.Done()
	return "a.go\nb.go", ctx.Err()
}

// A server without an SDK: this is what it does with a tools/call.
func Example() {
	server := &toolcall.Settings{
		Policy:      &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 100 * time.Millisecond}},
		MetaTimeout: true,
	}
	write := func(message any) error {
		line, err := json.Marshal(message)
		fmt.Println(string(line))
		return err
	}
	request := []byte(`{"name":"search","_meta":{"progressToken":"t1"},"arguments":{"pattern":"^$"}}`)

	var params struct {
		Name      string
		Meta      map[string]any `json:"_meta"`
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(request, &params); err != nil {
		fmt.Println(err)
	}
	text, err := toolcall.Do(context.Background(), server, toolcall.Call{
		Tool: params.Name, Token: params.Meta["progressToken"], Meta: params.Meta, Arguments: params.Arguments,
		Send: func(_ context.Context, n progress.Notification) error {
			return write(map[string]any{"method": "notifications/progress", "params": n})
		},
	}, search)
	if err != nil {
		text = toolcall.Text(err, text)
	}
	fmt.Println("isError:", err != nil)
	fmt.Println(text)
	// Output:
	// {"method":"notifications/progress","params":{"progressToken":"t1","progress":2,"total":10,"message":"b.go"}}
	// isError: true
	// No progress for 0.1s (idle timeout). Tool should call heartbeat() during long work.
	// last: b.go 2 of 10
	//
	// Partial output:
	// a.go
	// b.go
}

// A request may ask for a total of its own, up to the tool's ceiling.
func ExampleDo() {
	server := &toolcall.Settings{
		MetaTimeout: true,
		Policy:      &policy.Policy{Tools: map[string]policy.Tool{"search": {MaxTotal: time.Minute}}},
	}
	for _, asked := range []any{50.0, "soon"} {
		call := toolcall.Call{Tool: "search", Meta: map[string]any{"timeoutMs": asked}}
		_, err := toolcall.Do(context.Background(), server, call, search)
		fmt.Println(err)
	}
	// Output:
	// Tool exceeded wall-clock limit of 0.05s.
	// timeout: timeoutMs="soon": want milliseconds as a whole number from 1 to 9223372036854, such as 120000
}

func ExampleText() {
	err := &timeout.Error{Kind: timeout.ErrTotal, Limit: 90 * time.Second}
	fmt.Println(toolcall.Text(err, "a.go"))
	fmt.Println(toolcall.Text(err, ""))
	// Output:
	// Tool exceeded wall-clock limit of 90s.
	//
	// Partial output:
	// a.go
	// Tool exceeded wall-clock limit of 90s.
}

// A result that has its output already needs no more than the message.
func ExampleMessage() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		progress.Report(ctx, progress.Update{Message: "a.go"})
		<-ctx.Done()
		return nil
	}, timeout.Config{Total: 50 * time.Millisecond})
	fmt.Println(toolcall.Message(err))
	// Output:
	// Tool exceeded wall-clock limit of 0.05s.
	// last: a.go
}

func ExampleOutcomeOf() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, timeout.Config{Total: time.Minute, Idle: 50 * time.Millisecond})
	o, ok := toolcall.OutcomeOf(err)
	fmt.Println(ok, o.Kind, o.ExitCode, o.Limit, o.Total, o.Idle)
	_, ok = toolcall.OutcomeOf(errors.New("no such file"))
	fmt.Println(ok)
	// Output:
	// true idle 124 50 60000 50
	// false
}

func ExampleFromContext() {
	_, _ = toolcall.Do(context.Background(), nil, toolcall.Call{Tool: "search", Session: "s1"}, func(ctx context.Context) (string, error) {
		c := toolcall.FromContext(ctx)
		fmt.Println(c.Tool, c.Session)
		return "", nil
	})
	fmt.Println(toolcall.FromContext(context.Background()))
	// Output:
	// search s1
	// <nil>
}

func ExampleDirect() {
	_, _ = toolcall.Do(context.Background(), nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (string, error) {
		fmt.Println(toolcall.Direct(ctx))
		return timeout.Do(ctx, func(ctx context.Context) (string, error) {
			fmt.Println(toolcall.Direct(ctx))
			return "", nil
		}, timeout.Config{Total: time.Minute})
	})
	// Output:
	// true
	// false
}

// The end of a server: the call that runs is aborted and answered, and then the server can close
// its connections.
func ExampleDrain() {
	var drain toolcall.Drain
	started, answered := make(chan bool), make(chan bool)
	go func() { // a server's handler of tools/call
		defer close(answered)
		_, err := toolcall.Do(drain.Context(context.Background()), nil, toolcall.Call{Tool: "index"},
			func(ctx context.Context) (string, error) {
				close(started)
				<-ctx.Done()
				return "", ctx.Err()
			})
		fmt.Println(err)
	}()
	<-started

	limited, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	err := drain.Shutdown(limited)
	<-answered
	fmt.Println(err)
	// Output:
	// Tool was aborted: the server is shutting down
	// <nil>
}

// A call that waits for its turn ends too when the server does.
func ExampleJoin() {
	var drain toolcall.Drain
	turn := make(chan bool) // never comes
	call := func(ctx context.Context) error {
		ctx, leave := toolcall.Join(ctx)
		defer leave()
		select {
		case <-turn:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the call ended before its turn: %w", context.Cause(ctx))
		}
	}
	go drain.Shutdown(context.Background())
	fmt.Println(call(drain.Context(context.Background())))
	// Output: the call ended before its turn: the server is shutting down
}

// A tool in the answer to tools/list.
func ExampleSettings_Declaration() {
	server := &toolcall.Settings{
		Policy: &policy.Policy{Tools: map[string]policy.Tool{
			"explore": {Limits: &timeout.Config{Total: 10 * time.Minute, Idle: 2 * time.Minute}, MaxTotal: 30 * time.Minute},
		}},
		MetaTimeout: true,
	}
	limits, err := server.Declaration("explore")
	if err != nil {
		fmt.Println(err)
		return
	}
	tool := map[string]any{"name": "explore", "_meta": map[string]any{policy.DeclarationKey: limits}}
	data, _ := json.MarshalIndent(tool, "", " ")
	fmt.Println(string(data))
	// Output:
	// {
	//  "_meta": {
	//   "io.github.tooldeadline/limits": {
	//    "graceMs": 7000,
	//    "idleMs": 120000,
	//    "maxTotalMs": 1800000,
	//    "progressMs": 10000,
	//    "totalMs": 600000
	//   }
	//  },
	//  "name": "explore"
	// }
}

func ExampleCauseOf() {
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (int, error) {
		cancel(&toolcall.CancelledError{Reason: "Request timed out"})
		<-ctx.Done()
		return 0, ctx.Err()
	})
	fmt.Println(toolcall.CauseOf(err))
	fmt.Println(err)
	// Output:
	// client_timeout
	// Tool was aborted: the client has cancelled the call: Request timed out
}

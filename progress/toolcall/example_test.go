package toolcall_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

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

package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A program counts what its tools do, wherever they are run.
func ExampleWatch() {
	stop := timeout.Watch(timeout.Hooks{
		Started:  func(_ context.Context, s timeout.Snapshot) { fmt.Println(s.Tool, "starts") },
		Finished: func(_ context.Context, s timeout.Snapshot) { fmt.Println(s.Tool, "ends:", s.Err) },
	})
	defer stop()

	_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.WithName("hash"))
	_ = timeout.Run(context.Background(), func(context.Context) error { return errors.New("not found") }, timeout.WithName("fetch"))
	// Output:
	// hash starts
	// hash ends: <nil>
	// fetch starts
	// fetch ends: not found
}

type traceKey struct{}

// A tracer begins a span before the function, which finds it in its context, and ends it
// after.
func ExampleWatch_span() {
	stop := timeout.Watch(timeout.Hooks{
		Context: func(ctx context.Context, s timeout.Snapshot) context.Context {
			return context.WithValue(ctx, traceKey{}, "span of "+s.Tool)
		},
		Finished: func(ctx context.Context, s timeout.Snapshot) { fmt.Println(ctx.Value(traceKey{}), "has ended") },
	})
	defer stop()

	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println("working in the", ctx.Value(traceKey{}))
		return nil
	}, timeout.WithName("hash"))
	// Output:
	// working in the span of hash
	// span of hash has ended
}

// The executions in progress, seen from outside.
func ExampleRunning() {
	defer timeout.Watch(timeout.Hooks{})()

	started, done := make(chan struct{}), make(chan error)
	go func() {
		done <- timeout.Run(context.Background(), func(ctx context.Context) error {
			defer heartbeat.Hold(ctx)() // waits for a person
			heartbeat.BeatWith(ctx, "waiting for approval")
			close(started)
			<-ctx.Done()
			return nil
		}, timeout.WithName("deploy"))
	}()
	<-started

	for len(timeout.Running()) == 0 {
		time.Sleep(time.Millisecond) // until it is listed
	}
	for _, x := range timeout.Running() {
		s := x.Snapshot()
		fmt.Println(s.Tool, s.State, s.Detail)
		x.Abort(errors.New("the office is closed"))
	}
	fmt.Println(<-done)
	// Output:
	// deploy held waiting for approval
	// Tool was aborted: the office is closed
}

func ExampleFromContext() {
	fmt.Println(timeout.FromContext(context.Background()) == nil)

	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		s := timeout.FromContext(ctx).Snapshot()
		fmt.Println(s.Tool, s.State, s.Limits.Idle)
		return nil
	}, timeout.WithName("hash"), timeout.FastTools())
	// Output:
	// true
	// hash running 30s
}

func ExampleExecution_Abort() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		go timeout.FromContext(ctx).Abort(errors.New("not needed any more"))
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return ctx.Err()
	}, timeout.FastTools())
	fmt.Println(err, timeout.ExitCode(err))
	// Output:
	// not needed any more
	// Tool was aborted: not needed any more 130
}

func ExampleExecution_Parent() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		return timeout.Run(ctx, func(ctx context.Context) error {
			for x := timeout.FromContext(ctx); x != nil; x = x.Parent() {
				fmt.Println(x.Snapshot().Tool)
			}
			return nil
		}, timeout.WithName("compile"))
	}, timeout.WithName("build"))
	// Output:
	// compile
	// build
}

func ExampleExecution_Stack() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		x := timeout.FromContext(ctx)
		stack := make(chan []byte)
		go func() { stack <- x.Stack() }()
		fmt.Println(strings.Contains(string(<-stack), "ExampleExecution_Stack"))
		return nil
	})
	// Output: true
}

// A tool of which nobody knows yet how long it is silent.
func ExampleWithObserveOnly() {
	exceeded := make(chan struct{})
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		<-exceeded // and no heartbeat
		return ctx.Err()
	}, timeout.Config{Idle: 10 * time.Millisecond}, timeout.WithObserveOnly(), timeout.WithName("index"), timeout.WithHooks(timeout.Hooks{
		Exceeded: func(_ context.Context, s timeout.Snapshot) {
			fmt.Println(s.Tool, "would have been stopped:", s.Err)
			close(exceeded)
		},
		Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Println("an idle limit above its longest gap lets it live:", s.LongestGap >= s.Limits.Idle)
		},
	}))
	fmt.Println(err)
	// Output:
	// index would have been stopped: No progress for 0.01s (idle timeout). Tool should call heartbeat() during long work.
	// an idle limit above its longest gap lets it live: true
	// <nil>
}

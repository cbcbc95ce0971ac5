package timeout_test

import (
	"context"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tool that returns what it has when its time is running out, and succeeds.
func ExampleClosing() {
	mock := clock.NewMock()
	pages := 0
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		for {
			select {
			case <-timeout.Closing(ctx):
				left, _ := timeout.Remaining(ctx)
				fmt.Printf("%d pages, %v left to write them\n", pages, left)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			default:
				mock.Add(20 * time.Second) // reads a page
				pages++
			}
		}
	}, timeout.Config{Total: 2 * time.Minute, Reserve: 20 * time.Second}, timeout.WithClock(mock))
	fmt.Println(err)
	// Output:
	// 5 pages, 20s left to write them
	// <nil>
}

func ExampleRemaining() {
	mock := clock.NewMock()
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		mock.Add(45 * time.Second)
		fmt.Println(timeout.Remaining(ctx))
		return nil
	}, timeout.Config{Total: time.Minute}, timeout.WithClock(mock))
	fmt.Println(timeout.Remaining(context.Background()))
	// Output:
	// 15s true
	// 0s false
}

// Work that cannot fit into what is left is refused before it starts.
func ExampleNeed() {
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		mock.Add(45 * time.Second)
		return timeout.Run(ctx, func(context.Context) error {
			fmt.Println("never printed")
			return nil
		}, timeout.Config{}, timeout.Need(30*time.Second))
	}, timeout.Config{Total: time.Minute}, timeout.WithClock(mock))
	fmt.Println(err, timeout.ExitCode(err))
	// Output:
	// Tool needs 30s, and 15s is left. 124
}

// A server that is about to end lets its tools finish what they have.
func ExampleExecution_BeginClosing() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		go timeout.FromContext(ctx).BeginClosing() // as a server does for all that Running lists
		<-timeout.Closing(ctx)
		fmt.Println("saved")
		return nil
	}, timeout.UnboundedTotal())
	fmt.Println(err)
	// Output:
	// saved
	// <nil>
}

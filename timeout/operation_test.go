package timeout_test

import (
	"context"
	"fmt"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A trace names what it sees by what it is.
func ExampleWithOperation() {
	defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
		fmt.Println(s.Operation, s.Tool)
	}})()
	nothing := func(context.Context) error { return nil }
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		return timeout.Run(ctx, nothing, timeout.WithName("step")) // not inherited
	}, timeout.WithName("git"), timeout.WithOperation(timeout.OperationCommand))
	// Output:
	// tool step
	// command git
}

func ExampleOperation_String() {
	fmt.Println(timeout.OperationTool, timeout.OperationCommand, timeout.OperationHandler, timeout.OperationRequest, timeout.Operation(9))
	// Output:
	// tool command handler request Operation(9)
}

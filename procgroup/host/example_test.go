package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tooldeadline/tooldeadline/procgroup/host"
)

// A server runs until its host ends, or closes stdin.
func ExampleContext() {
	serve := func(context.Context) error { return nil } // until stdin ends

	ctx, stop := host.Context(context.Background())
	defer stop()
	err := serve(ctx)
	var ended *host.EndedError
	if errors.As(context.Cause(ctx), &ended) {
		fmt.Println("ended with", ended.Host)
	}
	fmt.Println(err)
	// Output: <nil>
}

func ExampleOf() {
	ctx, stop := host.Context(context.Background())
	defer stop()
	if h, err := host.Of(ctx); err == nil {
		fmt.Fprintln(os.Stderr, "ends with", h)
	} else {
		fmt.Fprintln(os.Stderr, "ends with stdin:", err)
	}
	_, err := host.Of(context.Background())
	fmt.Println(err)
	// Output: host: the context is not from host.Context
}

// A host that cannot be found, because it is in another container, or starts its servers through a
// daemon, gives them its process id.
func ExampleContextOf() {
	ctx, stop := host.ContextOf(context.Background(), os.Getppid())
	defer stop()
	fmt.Println(ctx.Err())
	// Output: <nil>
}

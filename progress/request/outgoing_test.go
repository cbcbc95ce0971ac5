package request_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A request is a client's; what runs around it and within is not.
func TestIsOutgoing(t *testing.T) {
	got := map[string]bool{}
	defer timeout.Watch(timeout.Hooks{Context: func(ctx context.Context, s timeout.Snapshot) context.Context {
		got[s.Tool] = request.IsOutgoing(ctx)
		return ctx
	}})()
	client := request.New(request.Limits{Timeout: time.Minute}, nil)
	_ = timeout.Run(t.Context(), func(ctx context.Context) error {
		_, err := request.Do(ctx, client, request.Call{Method: "ping"}, func(ctx context.Context, _ string) (int, error) {
			return 0, timeout.Run(ctx, func(context.Context) error { return nil }, timeout.WithName("within"))
		})
		return err
	}, timeout.WithName("around"))
	if diff := cmp.Diff(map[string]bool{"around": false, "ping": true, "within": false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A page of what runs leaves out what only waits for somebody else's server.
func ExampleOutgoing() {
	defer timeout.Watch(timeout.Hooks{Context: func(ctx context.Context, s timeout.Snapshot) context.Context {
		fmt.Println(s.Tool, request.IsOutgoing(ctx))
		return ctx
	}})()
	nothing := func(context.Context) error { return nil }
	_ = timeout.Run(context.Background(), nothing, timeout.WithName("search"))
	_ = timeout.Run(request.Outgoing(context.Background()), nothing, timeout.WithName("connect"))
	// Output:
	// search false
	// connect true
}

func ExampleIsOutgoing() {
	ctx := context.Background()
	fmt.Println(request.IsOutgoing(ctx), request.IsOutgoing(request.Outgoing(ctx)))
	// Output:
	// false true
}

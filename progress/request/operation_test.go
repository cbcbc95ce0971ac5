package request_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A request is a client's; the enclosing execution and those within are not.
func TestOperation(t *testing.T) {
	got := map[string]timeout.Operation{}
	defer timeout.Watch(timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) { got[s.Tool] = s.Operation }})()
	client := request.New(request.Limits{Timeout: time.Minute}, nil)
	_ = timeout.Run(t.Context(), func(ctx context.Context) error {
		_, err := request.Do(ctx, client, request.Call{Method: "ping"}, func(ctx context.Context, _ string) (int, error) {
			return 0, timeout.Run(ctx, func(context.Context) error { return nil }, timeout.WithName("within"))
		})
		return err
	}, timeout.WithName("around"))
	if diff := cmp.Diff(map[string]timeout.Operation{
		"around": timeout.OperationTool, "ping": timeout.OperationRequest, "within": timeout.OperationTool,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

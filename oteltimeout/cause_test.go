package oteltimeout_test

import (
	"context"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// SPEC 3.23: the span of an aborted call has the cause, as one word.
func TestCauseOfAbort(t *testing.T) {
	c := watch(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, _ = toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (int, error) {
		cancel(&toolcall.CancelledError{Reason: "Request timed out"})
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if got := attributesOf(c.only().Attributes)["tooldeadline.abort.cause"]; got != "client_timeout" {
		t.Errorf("the cause is %v", got)
	}
}

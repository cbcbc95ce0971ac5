package request

import (
	"context"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// BudgetOf returns how long the client that sends a request waits for its answer, for the _meta of a tools/call. ctx is
// the context of the send function of [Do], and renewed says that the request has the token of Do, so that progress
// renews the limit. BudgetOf counts what is left now of the limits of the request and of all executions that enclose
// the request. The Budget is zero if nothing limits the request.
func BudgetOf(ctx context.Context, renewed bool) policy.Budget {
	var b policy.Budget
	b.Left, _ = timeout.Remaining(ctx)
	for x := timeout.FromContext(ctx); x != nil; x = x.Parent() {
		// The whole idle limit is left, because the start of the request was a heartbeat of the enclosing execution.
		s := x.Snapshot()
		if idle := s.Limits.Idle; idle > 0 && !s.ObserveOnly && s.State != timeout.StateHeld && (b.Idle <= 0 || idle < b.Idle) {
			b.Idle = idle
		}
	}
	if !renewed && b.Idle > 0 {
		if b.Left <= 0 || b.Idle < b.Left {
			b.Left = b.Idle
		}
		b.Idle = 0
	}
	return b
}

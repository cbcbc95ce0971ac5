package request

import (
	"context"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// BudgetOf returns how long the client still waits for the answer to a request. The Budget belongs in the _meta of a
// tools/call. ctx is the context of the send function of [Do]. renewed says whether the request carries the token
// that Do gave to send, so that progress renews the limit. The limits of the request and of all executions that
// enclose it count, except limits of an execution that only observes, and idle limits that a heartbeat.Hold
// suspends. If renewed is false, Left is the shortest of these limits, and Idle is 0. The Budget is zero if there is
// no such limit.
func BudgetOf(ctx context.Context, renewed bool) policy.Budget {
	var b policy.Budget
	b.Left, _ = timeout.Remaining(ctx)
	for x := timeout.FromContext(ctx); x != nil; x = x.Parent() {
		// An idle limit counts in full, because the start of a request is a heartbeat of all executions around it.
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

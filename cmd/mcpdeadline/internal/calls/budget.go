package calls

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// budgetOf returns the budget in the params of a call: the time for which the host waits (SPEC 18.4). It returns the
// zero Budget if there is none. A value that cannot be read is ignored, and logged once.
func (s *Session) budgetOf(params *jsonrpc.Fields) policy.Budget {
	if params.Meta.Budget == nil {
		return policy.Budget{}
	}
	b, err := policy.ReadBudget(map[string]any{policy.BudgetKey: params.Meta.Budget})
	if err != nil {
		s.ignored.Do(func() { s.Logger.Warn("the budget that the host sends is ignored", "error", err) })
	}
	return b
}

// limits returns the limits of the tool, cut to the budget of the host unless runsOn says that the call may continue
// after its answer.
func (c *call) limits(runsOn bool) timeout.Config {
	limits, err := c.s.profile().Limits.Policy.Resolve(c.tool, 0)
	if err != nil || runsOn || c.budget == (policy.Budget{}) {
		return limits
	}
	by, grace := c.budget.Answer(c.wantsProgress)
	own := policy.Budget{Left: limits.Total, Idle: limits.Idle}.Shorter(by)
	limits.Total, limits.Idle = own.Left, own.Idle
	if limits.Grace == 0 {
		limits.Grace = timeout.DefaultGrace
	}
	limits.Grace = min(limits.Grace, max(grace, 1))
	return limits
}

// allows returns the budget that the proxy sends to the server: the time for which it still waits for the answer. The
// budget has the idle limit only if progress is the only sign of life: the server cannot know that other signs renew
// the limit.
func (c *call) allows() (b policy.Budget) {
	limits := c.limits(c.runsOn)
	if limits.Total > 0 {
		b.Left = max(limits.Total-time.Since(c.asking), time.Millisecond)
	}
	if left, ok := timeout.Remaining(context.Background()); ok && (b.Left == 0 || left < b.Left) { // the deadline of the environment
		b.Left = max(left, time.Millisecond)
	}
	if c.s.Alive == (alive.Signs{Progress: true}) {
		b.Idle = limits.Idle
	}
	return b
}

package temporalworker

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// options returns what an attempt runs with.
func (s *settings) options(ctx context.Context, info *activity.Info) ([]timeout.Option, error) {
	limits, observe, err := s.resolve(info)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		limits = within(time.Until(deadline), limits)
	}
	opts := make([]timeout.Option, 0, len(s.run)+4)
	opts = append(opts, timeout.WithName(info.ActivityType.Name))
	opts = append(opts, s.run...)
	if observe {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return append(opts, limits, timeout.WithRecover()), nil
}

// resolve returns the limits of the activity's options and the policy. Its total need not be
// within the deadline.
func (s *settings) resolve(info *activity.Info) (limits timeout.Config, observe bool, err error) {
	p := s.policy
	if p == nil {
		p = &policy.Policy{}
	}
	// A Default of nil would be that of the process, which stops an activity that was never meant
	// to beat after 2 min, and any other after 30.
	own := policy.Policy{
		Default: cmp.Or(p.Default, s.limits, new(timeout.Config)),
		Tools:   p.Tools, Lookup: p.Lookup, Logger: cmp.Or(p.Logger, s.log),
		TotalEnv: cmp.Or(p.TotalEnv, "-"), IdleEnv: cmp.Or(p.IdleEnv, "-"),
	}
	name := info.ActivityType.Name
	limits, err = own.Resolve(name, 0)
	if limits.Idle == 0 { // never off, since renewals hide from the service what is stuck
		limits.Idle = info.HeartbeatTimeout
	}
	limits.Total = shorter(limits.Total, p.Tools[name].MaxTotal)
	return limits, p.Observes(name), err
}

// A tenth of the time to the deadline is kept free, at most this, for the function to stop in,
// and an eighth of that for the outcome to be sent: when the deadline has passed, the SDK drops
// it.
const reserve = timeout.DefaultGrace + time.Second

// within returns limits that fit into the time left.
func within(left time.Duration, limits timeout.Config) timeout.Config {
	left = left.Round(time.Millisecond) // for the message
	if left <= 0 {
		return limits // the context is over, or will be at once
	}
	kept := min(left/10, reserve)
	limits.Total = shorter(limits.Total, left-kept)
	limits.Idle = min(limits.Idle, limits.Total) // Run would warn of more
	if limits.Grace == 0 {
		limits.Grace = timeout.DefaultGrace
	}
	limits.Grace = min(limits.Grace, left-kept/8-limits.Total)
	return limits
}

// shorter returns the shorter of two limits, of which 0 or less is none.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

package temporalworker

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// options returns the options for the execution of an attempt.
func (s *settings) options(ctx context.Context, info *activity.Info) ([]timeout.Option, error) {
	limits, observe, err := s.resolve(info)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		limits = within(time.Until(deadline), limits)
	}
	opts := []timeout.Option{limits, timeout.WithName(info.ActivityType.Name), timeout.WithLogger(s.Logger), timeout.WithRecover()}
	if observe {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return opts, nil
}

// resolve returns the limits according to the activity's options and the policy. The total may exceed
// the deadline.
func (s *settings) resolve(info *activity.Info) (limits timeout.Config, observe bool, err error) {
	p := s.Policy.Current()
	// A nil Default would mean the process default, which stops activities that never beat after 2
	// min, and all others after 30.
	own := policy.Policy{
		Default: cmp.Or(p.Default, new(timeout.Config)),
		Tools:   p.Tools, Lookup: p.Lookup, Logger: cmp.Or(p.Logger, s.Logger),
		TotalEnv: cmp.Or(p.TotalEnv, "-"), IdleEnv: cmp.Or(p.IdleEnv, "-"),
	}
	name := info.ActivityType.Name
	limits, err = own.Resolve(name, 0)
	if limits.Idle == 0 { // never off, because renewals hide a stuck activity from the service
		limits.Idle = info.HeartbeatTimeout
	}
	limits.Total = shorter(limits.Total, p.Tools[name].MaxTotal)
	return limits, p.Observes(name), err
}

// reserve bounds the time that is reserved before the deadline. A tenth of the time until the deadline is
// reserved for the function to stop in, and an eighth of that for sending the outcome, which the SDK
// drops after the deadline.
const reserve = timeout.DefaultGrace + time.Second

// within returns limits that fit into the time left.
func within(left time.Duration, limits timeout.Config) timeout.Config {
	left = left.Round(time.Millisecond) // rounded for the message
	if left <= 0 {
		return limits // the context is over, or will be at once
	}
	kept := min(left/10, reserve)
	limits.Total = shorter(limits.Total, left-kept)
	limits.Idle = min(limits.Idle, limits.Total) // otherwise Run would log a warning
	if limits.Grace == 0 {
		limits.Grace = timeout.DefaultGrace
	}
	limits.Grace = min(limits.Grace, left-kept/8-limits.Total)
	return limits
}

// shorter returns the shorter of two limits. 0 or less means no limit.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

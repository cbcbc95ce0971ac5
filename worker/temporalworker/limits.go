package temporalworker

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// options returns the options for the execution of an attempt, with its limits. ctx is the context of the SDK.
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

// resolve returns the limits of the policy and, if it has no idle limit, the HeartbeatTimeout of the activity. observe
// says that the limits are only observed. The total may exceed the deadline of the attempt.
func (s *settings) resolve(info *activity.Info) (limits timeout.Config, observe bool, err error) {
	p := s.Policy.Current()
	// A nil Default would mean the process default, which has an idle limit of 2 min and a total of 30 min.
	own := policy.Policy{
		Default: cmp.Or(p.Default, new(timeout.Config)),
		Tools:   p.Tools, Lookup: p.Lookup, Logger: cmp.Or(p.Logger, s.Logger),
		TotalEnv: cmp.Or(p.TotalEnv, "-"), IdleEnv: cmp.Or(p.IdleEnv, "-"),
	}
	name := info.ActivityType.Name
	limits, err = own.Resolve(name, 0)
	if limits.Idle == 0 { // the service cannot detect a stuck activity, because its heartbeats are sent anyway
		limits.Idle = info.HeartbeatTimeout
	}
	limits.Total = shorter(limits.Total, p.Tools[name].MaxTotal)
	return limits, p.Observes(name), err
}

// reserve is the longest time between the total and the deadline. That time is a tenth of the time until the deadline.
// Seven eighths of it are the grace of the function, and the last eighth is for sending the outcome, which the SDK
// drops after the deadline.
const reserve = timeout.DefaultGrace + time.Second

// within returns limits cut so that the total and the grace end within left, the time until the deadline.
func within(left time.Duration, limits timeout.Config) timeout.Config {
	left = left.Round(time.Millisecond) // rounded for the message
	if left <= 0 {
		return limits // ctx has ended, or is about to
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

// shorter returns the shorter of two limits. 0 or less means no limit, and shorter returns 0 if neither is set.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

package toolcall

import (
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Declaration returns the limits that the server declares for a tool, from the current policy and environment. An empty
// name stands for every tool that the policy does not name. For a tool whose limits are only observed, Total and Idle
// are 0. Declaration logs nothing, because each call logs problems with its limits. The error is the error of
// [policy.Policy.Resolve], or a [*timeout.ConfigError] for an option that [Do] refuses.
//
// Soft is always 0, because the Settings do not say whether a call can be answered with a task.
func (s *Settings) Declaration(tool string) (policy.Declaration, error) {
	if s == nil {
		s = new(Settings)
	}
	if err := s.check(); err != nil {
		return policy.Declaration{}, err
	}
	p := s.Policy.Current()
	silent := &policy.Policy{Default: p.Default, Tools: p.Tools, TotalEnv: p.TotalEnv, IdleEnv: p.IdleEnv, Lookup: p.Lookup}
	config, err := silent.Resolve(tool, 0)
	if err != nil {
		return policy.Declaration{}, err
	}
	if s.Limits != nil {
		config, _ = s.Limits.Normalize()
	}
	d := policy.Declaration{Total: config.Total, Idle: config.Idle, Grace: config.Grace, Progress: s.Interval}
	if d.Grace == 0 {
		d.Grace = timeout.DefaultGrace
	}
	if d.Progress == 0 {
		d.Progress = heartbeat.DefaultInterval
	}
	if s.Policy.Observes(tool) {
		d.Total, d.Idle = 0, 0
	}
	if s.Limits == nil && (s.MetaTimeout || s.ArgumentTimeout) { // Limits override what a request asks for
		d.MaxRequested = -1
		if ceiling := s.Policy.Current().Tools[tool].MaxTotal; ceiling > 0 {
			d.MaxRequested = ceiling
		}
	}
	return d, nil
}

package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Explain returns the limits that [Policy.Resolve] returns for a call, in one line for the log, with the
// place that each comes from: the request, an environment variable by its name, the tool's Limits, or the
// default of the policy or the process.
//
//	timeout 2m0s (TLC_SMOKE_TIMEOUT_MS), idle_timeout 1m0s (tool), grace 7s (default)
//
// A limit that is off is "off", and a negative grace is "none". A soft limit follows where the tool has one,
// and "not enforced" where the limits are only observed. Explain logs nothing. Its error is that of Resolve.
func (p *Policy) Explain(tool string, requested time.Duration) (string, error) {
	p = p.silent()
	r, err := p.resolve(tool, requested)
	if err != nil {
		return "", err
	}
	grace := "none"
	if r.Grace == 0 {
		r.Grace = timeout.DefaultGrace
	}
	if r.Grace > 0 {
		grace = r.Grace.String()
	}
	text := fmt.Sprintf("timeout %s (%s), idle_timeout %s (%s), grace %s (%s)", limit(r.Total), r.total, limit(r.Idle), r.idle, grace, r.grace)
	switch soft, _ := p.Soft(tool); {
	case soft < 0:
		text += ", soft at once (tool)"
	case soft > 0:
		text += fmt.Sprintf(", soft %v (tool)", soft)
	}
	if p.Observes(tool) {
		text += ", not enforced"
	}
	return text, nil
}

func limit(d time.Duration) string {
	if d == 0 {
		return "off"
	}
	return d.String()
}

// silent returns the policy in force without its logger.
func (p *Policy) silent() *Policy {
	p = p.Current()
	p = p.with(p.Default, p.Tools)
	p.Logger = nil
	return p
}

// SessionTimeout returns the timeout for transport sessions that carry calls under this policy, so that a
// session outlives each call: the longest total of a tool, or of a tool that the policy does not name, with
// the environment and up to the tool's MaxTotal, plus 30 s. It returns 0, no timeout, if one of these totals
// is off or only observed. It does not cover a request for a longer total of a tool without MaxTotal.
//
// SessionTimeout logs nothing. Its error is the [*timeout.ConfigError] of an environment variable that
// cannot be read, of any tool, so a program that calls it at the start can refuse to run.
func (p *Policy) SessionTimeout() (time.Duration, error) {
	p = p.silent()
	off := false
	var longest timeout.Config
	for _, tool := range append([]string{""}, slices.Sorted(maps.Keys(p.Tools))...) {
		c, err := p.Resolve(tool, 0)
		if err != nil {
			return 0, err
		}
		off = off || c.Total == 0 || p.Observes(tool)
		longest.Total = max(longest.Total, c.Total, p.Tools[tool].MaxTotal)
	}
	if off {
		return 0, nil
	}
	return longest.SessionTimeout(), nil
}

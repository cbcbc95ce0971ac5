package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Explain describes the limits that [Policy.Resolve] returns for a call, in one line for the log. It names the source
// of each limit: the request, an environment variable, the tool's Limits, or the default of the policy or the process.
//
//	timeout 2m0s (TLC_SMOKE_TIMEOUT_MS), idle_timeout 1m0s (tool), grace 7s (default)
//
// A limit that is switched off is shown as "off", and a negative grace as "none". The line includes a reserve if
// there is one, a soft limit if the tool has one, and "not enforced" if the limits are only observed. The source of a
// tool's Limits is shown as the tool, except for limits that [Parse] copied from the policy's default because the
// text did not set them. Explain logs nothing. It returns the error of Resolve.
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
	if r.Reserve > 0 {
		text += fmt.Sprintf(", reserve %v (%s)", r.Reserve, r.reserve)
	}
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

// silent returns a copy of the policy in force without its logger.
func (p *Policy) silent() *Policy {
	p = p.Current()
	p = p.merged(p)
	p.Logger = nil
	return p
}

// SessionTimeout returns a timeout for transport sessions that outlives every call under this policy: 30 s more than
// the longest total. It considers the total of each tool, the total of tools that are not in Tools, the environment,
// and each MaxTotal. It returns 0, which means no timeout, if one of the totals is off or only observed. If a tool
// has no MaxTotal, a request may ask for a longer total than SessionTimeout considers. A Grace of more than 30 s
// must be added to the result.
//
// SessionTimeout logs nothing. If an environment variable of any tool cannot be read, it returns a
// [*timeout.ConfigError], so a program that calls it at the start can refuse to run.
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

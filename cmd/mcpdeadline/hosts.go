package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// A knownHost is what is known of a program that calls tools. The table is that of docs/hosts.md.
type knownHost struct {
	limit  time.Duration // of a tool call; 0 means none
	idle   time.Duration // the idle limit that suits it; 0 means its total or the preset, the longer one
	renews bool          // progress renews limit
	plain  bool          // it does not prefix the names of tools with that of the server
}

var knownHosts = map[string]knownHost{
	"claude-code":    {idle: 29 * time.Minute},
	"claude-desktop": {limit: time.Minute},
	"codex":          {limit: 5 * time.Minute},
	"continue":       {limit: time.Minute, plain: true},
	"gemini-cli":     {limit: 10 * time.Minute},
	"cline":          {limit: time.Minute},
	"crush":          {idle: 30 * time.Minute},
	"opencode":       {limit: time.Minute, renews: true},
	"qwen-code":      {limit: 10 * time.Minute},
	"goose":          {limit: 5 * time.Minute},
	"zed":            {limit: time.Minute},
	"vscode":         {idle: 30 * time.Minute},
}

func hostNames() string {
	return strings.Join(slices.Sorted(maps.Keys(knownHosts)), ", ")
}

// total returns the total limit that suits the host: a little less than its own, so that the answer comes
// first. 0 means no limit, for hosts that have none or renew it on progress.
func (h knownHost) total() time.Duration {
	if h.renews {
		return 0
	}
	total := h.limit - min(h.limit/6, 10*time.Second)
	if total > time.Second { // models read it
		total = total.Truncate(100 * time.Millisecond)
	}
	return total
}

// silence returns the idle limit that suits the host where nobody has set one: no call is cut that the
// host would have waited for. preset is that of other hosts.
func (h knownHost) silence(preset time.Duration) time.Duration {
	return cmp.Or(h.idle, max(preset, h.total()))
}

// mostKeep is the longest default interval of keep-alives.
const mostKeep = 10 * time.Second

// keepAlive returns the interval of keep-alives: three within the time for which the host waits.
func (s *settings) keepAlive() time.Duration {
	limit := s.host.limit
	if s.all.total != nil && *s.all.total > 0 && (limit == 0 || *s.all.total < limit && !s.host.renews) {
		limit = *s.all.total
	}
	if limit == 0 {
		return mostKeep
	}
	return min(limit/3, mostKeep)
}

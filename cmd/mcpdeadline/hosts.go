package main

import (
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/hosts"
)

// A knownHost is a host with the idle limit that suits it.
type knownHost struct {
	hosts.Host
	idle time.Duration // 0 means its total or the preset, the longer one
}

// findHost returns the host that is called name, as -host has it.
func findHost(name string) (h knownHost, ok bool) {
	for _, h.Host = range hosts.All() {
		if h.Name != name {
			continue
		}
		if h.idle = h.Idle - time.Minute; h.Limit == 0 && h.Idle == 0 {
			h.idle = 30 * time.Minute
		}
		return h, true
	}
	return knownHost{}, false
}

func hostNames() string {
	var names []string
	for _, h := range hosts.All() {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// total returns the total limit that suits the host: a little less than its own, so that the answer comes
// first. 0 means no limit, for hosts that have none or renew it on progress.
func (h knownHost) total() time.Duration {
	if h.Renewed {
		return 0
	}
	total := h.Limit - h.Margin()
	if total > time.Second { // models read it
		total = total.Truncate(100 * time.Millisecond)
	}
	return total
}

// silence returns the idle limit that suits the host where nobody has set one: no call is cut that the
// host would have waited for. preset is that of other hosts.
func (h knownHost) silence(preset time.Duration) time.Duration {
	return max(h.idle, preset, h.total())
}

// mostKeep is the longest default interval of keep-alives.
const mostKeep = 10 * time.Second

// keepAlive returns the interval of keep-alives: three within the time for which the host waits.
func (s *settings) keepAlive() time.Duration {
	limit := s.host.Limit
	if s.all.total != nil && *s.all.total > 0 && (limit == 0 || *s.all.total < limit && !s.host.Renewed) {
		limit = *s.all.total
	}
	if limit == 0 {
		return mostKeep
	}
	return min(limit/3, mostKeep)
}

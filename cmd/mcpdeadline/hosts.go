package main

import (
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/hosts"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A choice is the host whose limits the calls must keep.
type choice struct {
	hosts.Host
	byHand bool // -host names the host
	off    bool // -host is "none", so that no host is recognised
}

// none is the value of -host with which no host is recognised.
const none = "none"

func hostNames() string {
	names := []string{none}
	for _, h := range hosts.All() {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// setHost reads NAME or NAME=LIMIT: the host whose limit on a call is to be kept, and the limit that it has
// been given in place of its usual one.
func (s *settings) setHost(key, value string) error {
	name, text, given := strings.Cut(value, "=")
	if value == none {
		s.host = choice{off: true}
		return nil
	}
	at := slices.IndexFunc(hosts.All(), func(h hosts.Host) bool { return h.Name == name })
	if at < 0 {
		return &settingError{key, `"` + name + `"`, "one of " + hostNames()}
	}
	s.host = choice{Host: hosts.All()[at], byHand: true}
	if given {
		d, err := parseDuration(key+" "+name, text)
		if err != nil {
			return err
		}
		s.host.Limit, s.host.Idle = d, 0
	}
	return nil
}

// total returns the time within which the host wants an answer: a little less than its own limit, so that the answer
// comes first. It returns 0 for a host that has no limit, or renews its limit on progress.
func (h choice) total() time.Duration {
	by, _ := h.Budget().Answer(true)
	if by.Left > time.Second { // models read it
		by.Left = by.Left.Truncate(100 * time.Millisecond)
	}
	return by.Left
}

// silence returns the idle limit for the host if the user has set none: the idle limit of preset, counted from the
// moment at which the host would have given up. A host that waits for ever has the total of preset.
func (h choice) silence(preset timeout.Config) time.Duration {
	if waits := max(h.Limit, h.Idle); waits > 0 {
		return waits + preset.Idle
	}
	return preset.Total
}

// mostKeep is the longest default interval of keep-alives.
const mostKeep = 10 * time.Second

// keepAlive returns the interval of keep-alives: three within the time for which the host waits.
func (s *settings) keepAlive() time.Duration {
	if s.keep != nil {
		return *s.keep
	}
	limit := s.host.Limit
	if s.all.total != nil && *s.all.total > 0 && (limit == 0 || *s.all.total < limit && !s.host.Renewed) {
		limit = *s.all.total
	}
	if limit == 0 {
		return mostKeep
	}
	return min(limit/3, mostKeep)
}

// profile returns the profile for the host, and a sentence for each limit that had to be changed.
func (s *settings) profile() (calls.Profile, []string, error) {
	policy, cuts, err := s.policy()
	if err != nil {
		return calls.Profile{}, nil, err
	}
	p := calls.Profile{Limits: &toolcall.Settings{Policy: policy}, Keep: s.keepAlive(), Plain: s.host.Plain, Waits: s.host.Budget(), Soft: s.softOf}
	if s.handles() {
		p.Continuation = new(adapter.Continuation)
		p.Continuation.After, _ = s.softOf("")
	}
	return p, cuts, nil
}

// known returns the settings for the host that has this name in its clientInfo. It returns false if -host is set, or
// if no such host is known.
func (s *settings) known(name string) (*settings, bool) {
	h, found := hosts.Find(name)
	if !found || s.host.byHand || s.host.off {
		return nil, false
	}
	fits := *s
	fits.host = choice{Host: h}
	return &fits, true
}

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

// A choice is the host for which the limits are chosen. Its Name is "" if the host is unknown.
type choice struct {
	hosts.Host
	byHand bool // -host names the host
	off    bool // -host is "none": hosts are not recognised by their names
}

// none is the value of -host that prevents the recognition of hosts by their names.
const none = "none"

func hostNames() string {
	names := []string{none}
	for _, h := range hosts.All() {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// setHost parses a value of -host: NAME, NAME=LIMIT or none. NAME is a known host, and LIMIT is the limit on a call
// that the user has configured in that host. key is the name of the flag, for errors.
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

// total returns the time within which a call must be answered: a little less than the limit of the host, so that the
// answer arrives before the host gives up. It returns 0 for a host without a limit, or one that progress renews.
func (h choice) total() time.Duration {
	by, _ := h.Budget().Answer(true)
	if by.Left > time.Second { // a round number, because messages for models contain it
		by.Left = by.Left.Truncate(100 * time.Millisecond)
	}
	return by.Left
}

// silence returns the default idle limit for the host: the limit of the host plus the idle limit of preset. For a host
// without a limit it returns the total of preset.
func (h choice) silence(preset timeout.Config) time.Duration {
	if waits := max(h.Limit, h.Idle); waits > 0 {
		return waits + preset.Idle
	}
	return preset.Total
}

// mostKeep is the longest default interval of keep-alives.
const mostKeep = 10 * time.Second

// keepAlive returns the interval of keep-alive notifications: the value of -keep-alive, or else a third of the time for
// which the host waits, at most mostKeep.
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

// profile returns the profile for the host, and the sentences and the error of policy.
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

// known returns a copy of s for the host with the given name in its clientInfo. It returns false if -host is set, or if
// the host is unknown.
func (s *settings) known(name string) (*settings, bool) {
	h, found := hosts.Find(name)
	if !found || s.host.byHand || s.host.off {
		return nil, false
	}
	fits := *s
	fits.host = choice{Host: h}
	return &fits, true
}

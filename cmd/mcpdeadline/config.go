package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A settingError reports a bad setting: its key, its value, and what is accepted.
type settingError struct{ key, value, accepted string }

func (e *settingError) Error() string {
	return fmt.Sprintf("%s=%s: want %s", e.key, e.value, e.accepted)
}

const acceptedDuration = `a duration such as "90s" or "1h30m", or "0" for none`

// parseDuration parses a Go duration. It returns a *settingError that names key if value is invalid or negative.
func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, &settingError{key, fmt.Sprintf("%q", value), acceptedDuration}
	}
	return d, nil
}

// limits holds the limits that flags set for one tool or for all tools. A limit is nil if no flag sets it.
type limits struct{ total, idle, grace, soft *time.Duration }

// fields returns pointers to the limits, by their keys in the value of -tool.
func (l *limits) fields() map[string]**time.Duration {
	return map[string]**time.Duration{"total": &l.total, "idle": &l.idle, "grace": &l.grace, "soft": &l.soft}
}

func names[V any](fields map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// over returns c with the limits of l that are not nil. The soft limit is no part of c.
func (l limits) over(c timeout.Config) timeout.Config {
	if l.total != nil {
		c.Total = *l.total
	}
	if l.idle != nil {
		c.Idle = *l.idle
	}
	if l.grace != nil {
		if c.Grace = *l.grace; c.Grace == 0 {
			c.Grace = -1 // 0 would mean the default
		}
	}
	return c
}

// settings holds the limits of the configuration file and the flags.
type settings struct {
	host  choice
	file  policy.Policy // the zero Policy without -config
	all   limits        // of the flags
	tools map[string]limits
	keep  *time.Duration // interval of keep-alive notifications; 0 means none, nil that no flag sets it
}

// policy returns the limits of each tool, and a sentence for each configured limit that cut has changed. It reads the
// environment variables that the file names for tools, and returns an error if the value of one is invalid. It ignores
// MCP_TIMEOUT and MCP_IDLE_TIMEOUT, because the server inherits the environment and these variables are meant for it.
func (s *settings) policy() (*policy.Policy, []string, error) {
	base := timeout.Default()
	if s.file.Default != nil {
		base = *s.file.Default
	}
	base = s.all.over(s.withHostDefaults(base))
	whole, cuts := s.cut("all tools", base, s.all, "")
	p := &policy.Policy{Default: &whole, Tools: make(map[string]policy.Tool), TotalEnv: "-", IdleEnv: "-"}
	for _, name := range s.named() {
		own := s.file.Tools[name]
		c := base
		if own.Limits != nil {
			c = s.withHostDefaults(*own.Limits)
		}
		c = s.tools[name].over(c)
		if own.Env != "" {
			read := policy.Policy{Tools: map[string]policy.Tool{name: {Limits: &timeout.Config{Total: c.Total}, Env: own.Env}}, TotalEnv: "-", IdleEnv: "-"}
			total, err := read.Resolve(name, 0)
			if err != nil {
				return nil, nil, err
			}
			c.Total = total.Total
		}
		limits, said := s.cut("tool "+name, c, s.tools[name], name)
		if p.Tools[name] = (policy.Tool{Limits: &limits}); c != base || s.tools[name].soft != nil || own.Soft != 0 {
			cuts = append(cuts, said...) // otherwise they would repeat the sentences for all tools
		}
	}
	return p, cuts, nil
}

// withHostDefaults returns c, in which limits that are equal to [timeout.Default] are replaced by limits that suit the
// host. Limits that differ were set by the user, and do not change.
func (s *settings) withHostDefaults(c timeout.Config) timeout.Config {
	preset := timeout.Default()
	if s.host.Name == "" {
		return c
	}
	if c.Idle == preset.Idle {
		c.Idle = s.host.silence(preset)
	}
	switch {
	case c.Total != preset.Total:
	case s.host.total() == 0:
		c.Total = 0
	default:
		c.Total = max(preset.Total, s.host.Limit)
	}
	return c
}

// named returns the names, in order, of the tools for which the file or a flag has an entry.
func (s *settings) named() []string {
	names := slices.AppendSeq(slices.Sorted(maps.Keys(s.file.Tools)), maps.Keys(s.tools))
	slices.Sort(names)
	return slices.Compact(names)
}

// cut returns c without contradictions. If -host names the host, cut also shortens the total to the time for which the
// host waits. It returns a sentence, which begins with name, for each limit that the user has set and that cut has
// changed. given holds the limits of the flags. tool is the name of the tool, or "" for all tools.
func (s *settings) cut(name string, c timeout.Config, given limits, tool string) (_ timeout.Config, cuts []string) {
	say := func(format string, args ...any) {
		cuts = append(cuts, name+": "+fmt.Sprintf(format, args...))
	}
	_, negative := timeout.Config{Total: min(c.Total, 0), Idle: min(c.Idle, 0)}.Normalize()
	for _, w := range negative {
		say("%s", w)
	}
	c.Total, c.Idle = max(c.Total, 0), max(c.Idle, 0)
	ceiling := s.host.total()
	asked, _ := s.configuredSoft(tool)
	soft, _ := s.softOf(tool)
	if asked > soft {
		say("the host %s does not wait for a soft limit of %v; using %v", s.host.Name, asked, soft)
	}
	// The total is not cut if calls are answered at a soft limit, because they continue afterwards. Nor is it cut for a
	// host that was only recognised by its name, because the user may have raised the limit of that host.
	if s.host.byHand && ceiling > 0 && soft == 0 && (c.Total == 0 || c.Total > ceiling) {
		if given.total != nil || c.Total != timeout.Default().Total {
			say("the host %s does not wait for a total of %v; using %v", s.host.Name, c.Total, ceiling)
		}
		c.Total = ceiling
	}
	if c.Total > 0 && c.Idle > c.Total {
		if given.idle != nil || c.Idle != s.withHostDefaults(timeout.Default()).Idle {
			say("the idle limit of %v exceeds the total; using %v", c.Idle, c.Total)
		}
		c.Idle = c.Total
	}
	return c, cuts
}

// configuredSoft returns the soft limit of a tool, after which a call is answered with a handle. If soft is 0, no call
// is answered with a handle; if soft is negative, every call is, at once. taskOnly says that calls of hosts without
// support for tasks are refused.
func (s *settings) configuredSoft(tool string) (soft time.Duration, taskOnly bool) {
	soft, taskOnly = s.file.Soft(tool)
	switch {
	case s.tools[tool].soft != nil:
		soft = *s.tools[tool].soft
	case soft == 0 && s.all.soft != nil:
		soft = *s.all.soft
	case soft == 0 && s.host.Continues:
		soft = s.host.total()
	}
	return soft, taskOnly
}

// softOf returns the results of configuredSoft. If -host names the host, soft is at most the time for which it waits.
func (s *settings) softOf(tool string) (soft time.Duration, taskOnly bool) {
	soft, taskOnly = s.configuredSoft(tool)
	if ceiling := s.host.total(); ceiling > 0 && s.host.byHand {
		soft = min(soft, ceiling)
	}
	return soft, taskOnly
}

// handles reports whether any tool has a soft limit or refuses calls that cannot become a task.
func (s *settings) handles() bool {
	return slices.ContainsFunc(append(s.named(), ""), func(tool string) bool {
		soft, taskOnly := s.softOf(tool)
		return soft != 0 || taskOnly
	})
}

// setTool parses a value of -tool, such as build:total=1h,idle=5m, and adds its limits to those of the tool.
func (s *settings) setTool(value string) error {
	bad := &settingError{"-tool", fmt.Sprintf("%q", value), "NAME:KEY=DURATION,... with keys of " + names(new(limits).fields()) + `, such as "build:total=1h,idle=5m"`}
	i := strings.LastIndexByte(value, ':')
	if i <= 0 {
		return bad
	}
	name, tool := value[:i], s.tools[value[:i]]
	fields := tool.fields()
	for _, pair := range strings.Split(value[i+1:], ",") {
		key, text, found := strings.Cut(pair, "=")
		if fields[key] == nil || !found {
			return bad
		}
		d, err := parseDuration("-tool "+name+": "+key, text)
		if err != nil {
			return err
		}
		*fields[key] = &d
	}
	s.tools[name] = tool
	return nil
}

// readFile reads the limits of a configuration file; see [policy.Parse]. It ignores the other settings of the file.
func (s *settings) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	read, err := policy.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.file.Default, s.file.Tools = read.Default, read.Tools
	return nil
}

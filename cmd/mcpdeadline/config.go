package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// parseDuration is time.ParseDuration without negative durations.
func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, &settingError{key, fmt.Sprintf("%q", value), acceptedDuration}
	}
	return d, nil
}

// limits are the limits of one tool or of all tools. nil means not given.
type limits struct{ total, idle, grace, soft *time.Duration }

// fields returns the limits by their names in the file and in -tool.
func (l *limits) fields() map[string]**time.Duration {
	return map[string]**time.Duration{"total": &l.total, "idle": &l.idle, "grace": &l.grace, "soft": &l.soft}
}

func names[V any](fields map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// over returns c with the limits that are given in l.
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

// settings are the limits of the file and the flags.
type settings struct {
	host  string
	all   limits
	tools map[string]limits
}

// policy returns the limits of each tool, and a sentence for each limit that had to be cut. It
// ignores MCP_TIMEOUT and the like: the server inherits the environment, so they are meant for it.
func (s *settings) policy() (*policy.Policy, []string) {
	var cuts []string
	ceiling := hostTotals[s.host]
	limit := func(name string, c timeout.Config, given limits, soft time.Duration) *timeout.Config {
		if given.soft != nil && *given.soft > soft {
			cuts = append(cuts, fmt.Sprintf("%s: the host %s does not wait for a soft limit of %v; using %v", name, s.host, *given.soft, soft))
		}
		// A call that is answered at its soft limit may run on for longer than the host waits.
		if ceiling > 0 && soft == 0 && (c.Total == 0 || c.Total > ceiling) {
			if given.total != nil {
				cuts = append(cuts, fmt.Sprintf("%s: the host %s does not wait for a total of %v; using %v", name, s.host, c.Total, ceiling))
			}
			c.Total = ceiling
		}
		if c.Total > 0 && c.Idle > c.Total {
			if given.idle != nil {
				cuts = append(cuts, fmt.Sprintf("%s: the idle limit of %v exceeds the total; using %v", name, c.Idle, c.Total))
			}
			c.Idle = c.Total
		}
		return &c
	}
	base := s.all.over(timeout.Default())
	p := &policy.Policy{
		Default: limit("all tools", base, s.all, s.softOf("")), Tools: make(map[string]policy.Tool),
		TotalEnv: "-", IdleEnv: "-",
	}
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		p.Tools[name] = policy.Tool{Limits: limit("tool "+name, s.tools[name].over(base), s.tools[name], s.softOf(name))}
	}
	return p, cuts
}

// softOf returns the soft limit of a tool, after which a call is answered with a handle. It is cut to
// the time for which the host waits. 0 means never.
func (s *settings) softOf(tool string) time.Duration {
	soft := s.tools[tool].soft
	if soft == nil {
		soft = s.all.soft
	}
	if soft == nil {
		return 0
	}
	if ceiling := hostTotals[s.host]; ceiling > 0 {
		return min(*soft, ceiling)
	}
	return *soft
}

// handles reports whether any tool has a soft limit.
func (s *settings) handles() bool {
	any := s.softOf("") > 0
	for tool := range s.tools {
		any = any || s.softOf(tool) > 0
	}
	return any
}

// setHost sets the host whose request limit is to be kept.
func (s *settings) setHost(key, value string) error {
	if _, ok := hostTotals[value]; !ok {
		return &settingError{key, fmt.Sprintf("%q", value), "one of " + hostNames()}
	}
	s.host = value
	return nil
}

// setTool reads NAME:total=1h,idle=5m. Its limits take precedence over those of the file.
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

// readFile reads a configuration file:
//
//	{"host": "zed", "total": "30m", "idle": "2m", "tools": {"build": {"total": "1h"}}}
func (s *settings) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var all map[string]json.RawMessage
	err = d.Decode(&all)
	if err == nil && all == nil {
		err = errors.New("got null")
	}
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more follows the object")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: want one JSON object: %w", name, err)
	}
	fields := s.all.fields()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		switch {
		case key == "tools":
			err = s.readTools(name, value)
		case key == "host":
			var host string
			if json.Unmarshal(value, &host) != nil {
				host = string(value)
			}
			err = s.setHost(name+": host", host)
		case fields[key] != nil:
			err = readDuration(name+": "+key, value, fields[key])
		default:
			err = &settingError{name + ": " + key, short(value), "one of the keys host, tools, " + names(fields)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) readTools(name string, value json.RawMessage) error {
	var tools map[string]json.RawMessage
	if json.Unmarshal(value, &tools) != nil || tools == nil {
		return &settingError{name + ": tools", short(value), "an object that maps names of tools to limits"}
	}
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		key := name + ": tools." + tool
		var given map[string]json.RawMessage
		if json.Unmarshal(tools[tool], &given) != nil || given == nil {
			return &settingError{key, short(tools[tool]), "an object with any of " + names(new(limits).fields())}
		}
		var l limits
		fields := l.fields()
		for _, k := range slices.Sorted(maps.Keys(given)) {
			if fields[k] == nil {
				return &settingError{key + "." + k, short(given[k]), "one of the keys " + names(fields)}
			}
			if err := readDuration(key+"."+k, given[k], fields[k]); err != nil {
				return err
			}
		}
		s.tools[tool] = l
	}
	return nil
}

func readDuration(key string, value json.RawMessage, to **time.Duration) error {
	var text string
	if json.Unmarshal(value, &text) != nil || bytes.Equal(value, []byte("null")) {
		return &settingError{key, short(value), acceptedDuration + ", in quotation marks"}
	}
	d, err := parseDuration(key, text)
	if err != nil {
		return err
	}
	*to = &d
	return nil
}

// short returns a JSON value, cut to a length that suits a message.
func short(value json.RawMessage) string {
	if len(value) > 60 {
		return strings.ToValidUTF8(string(value[:60]), "") + "..."
	}
	return string(value)
}

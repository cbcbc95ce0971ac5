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

// A settingError says which setting cannot be, what it was, and what would have been accepted.
type settingError struct{ key, value, accepted string }

func (e *settingError) Error() string {
	return fmt.Sprintf("%s=%s: want %s", e.key, e.value, e.accepted)
}

const acceptedDuration = `a duration such as "90s" or "1h30m", or "0" for none`

// parseDuration takes what time.ParseDuration does, but nothing negative.
func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, &settingError{key, fmt.Sprintf("%q", value), acceptedDuration}
	}
	return d, nil
}

// limits are those of a tool, or of all, as far as they are given.
type limits struct{ total, idle, grace, soft *time.Duration }

// fields are the limits by the name that they have in the file and in -tool.
func (l *limits) fields() map[string]**time.Duration {
	return map[string]**time.Duration{"total": &l.total, "idle": &l.idle, "grace": &l.grace, "soft": &l.soft}
}

func names[V any](fields map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// over returns c with what is given.
func (l limits) over(c timeout.Config) timeout.Config {
	if l.total != nil {
		c.Total = *l.total
	}
	if l.idle != nil {
		c.Idle = *l.idle
	}
	if l.grace != nil {
		if c.Grace = *l.grace; c.Grace == 0 {
			c.Grace = -1 // 0 would be the default
		}
	}
	return c
}

// settings are what the file and the flags say of the limits.
type settings struct {
	host  string
	all   limits
	tools map[string]limits
}

// policy returns the limits of each tool, and a sentence for each that a host's own limit has
// cut. The environment has no say: MCP_TIMEOUT and its like are the server's, which inherits
// them.
func (s *settings) policy() (*policy.Policy, []string) {
	var cuts []string
	ceiling := hostTotals[s.host]
	limit := func(name string, c timeout.Config, given limits, soft time.Duration) *timeout.Config {
		if given.soft != nil && *given.soft > soft {
			cuts = append(cuts, fmt.Sprintf("%s: a soft limit of %v is more than the host %s waits for; it is %v", name, *given.soft, s.host, soft))
		}
		// What is answered at its soft limit may run on.
		if ceiling > 0 && soft == 0 && (c.Total == 0 || c.Total > ceiling) {
			if given.total != nil {
				cuts = append(cuts, fmt.Sprintf("%s: a total of %v is more than the host %s waits for; it is %v", name, c.Total, s.host, ceiling))
			}
			c.Total = ceiling
		}
		if c.Total > 0 && c.Idle > c.Total {
			if given.idle != nil {
				cuts = append(cuts, fmt.Sprintf("%s: an idle limit of %v is more than the total; it is %v", name, c.Idle, c.Total))
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

// softOf returns after how long a call of a tool is answered with a handle, 0 for never. A host
// that waits for less gets it earlier.
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

// setHost sets the host whose limit is to be kept.
func (s *settings) setHost(key, value string) error {
	if _, ok := hostTotals[value]; !ok {
		return &settingError{key, fmt.Sprintf("%q", value), "one of " + hostNames()}
	}
	s.host = value
	return nil
}

// setTool reads NAME:total=1h,idle=5m. What it says of a tool goes before what the file says of
// the same.
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
		err = errors.New("it is null")
	}
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after the object")
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
			err = &settingError{name + ": " + key, short(value), "no such key; there are host, tools, " + names(fields)}
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
		return &settingError{name + ": tools", short(value), "an object with the limits of each tool by its name"}
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
				return &settingError{key + "." + k, short(given[k]), "no such key; there are " + names(fields)}
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

// short is a JSON value for a message.
func short(value json.RawMessage) string {
	if len(value) > 60 {
		return strings.ToValidUTF8(string(value[:60]), "") + "..."
	}
	return string(value)
}

package timeout

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// A keyed is a field of a Config and its JSON key.
type keyed struct {
	key   string
	value *time.Duration
}

func (c *Config) byKey() []keyed {
	return []keyed{
		{"timeout", &c.Total},
		{"idle_timeout", &c.Idle},
		{"grace", &c.Grace},
		{"reserve", &c.Reserve},
	}
}

// MarshalJSON returns an object with all limits, in seconds, which [Config.UnmarshalJSON] reads:
//
//	{"timeout":1800,"idle_timeout":120,"grace":0,"reserve":0}
func (c Config) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range c.byKey() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `"`+f.key+`":`...)
		out = append(out, setting.Number(*f.value)...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads an object with any of the keys timeout (the total), idle_timeout, grace and reserve:
//
//	{"timeout": 1800, "idle_timeout": "2m", "grace": 7.5, "reserve": 30}
//
// A number is in seconds, and a string is a duration as [time.ParseDuration] reads it. A field whose key is absent
// keeps its value. A JSON null changes nothing. A negative limit is kept, and [Config.Normalize] warns about it.
//
// Keys are case-sensitive, and other keys are ignored, since they may belong to the program. UnmarshalJSON returns a
// [*ConfigError] and leaves c unchanged for a text that is not an object, a value that is neither a number nor such
// a string or that a Duration cannot hold exactly, a key that differs from one of the four by one letter, by case,
// by a hyphen or by an underscore, and a key that is given twice.
//
// Libraries that read YAML as JSON, such as sigs.k8s.io/yaml, can use it, too.
func (c *Config) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	members, ok := setting.Object(data)
	if members == nil {
		return &ConfigError{Key: "limits", Value: string(data), Accepted: `an object such as {"timeout": 1800, "idle_timeout": 120}`}
	}
	read := *c
	fields, known := make(map[string]*time.Duration), make([]string, 0, 4)
	for _, f := range read.byKey() {
		fields[f.key], known = f.value, append(known, f.key)
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		bad := &ConfigError{Key: key, Value: string(members[key])}
		if !ok {
			bad.Accepted = "each key once"
			return bad
		}
		if meant := setting.Misspelled(key, known); meant != "" {
			bad.Accepted = "the key " + meant
			return bad
		}
		field, ours := fields[key]
		if !ours {
			continue
		}
		if *field, ok = setting.Duration(members[key]); !ok {
			bad.Accepted = setting.AcceptedDuration
			return bad
		}
	}
	*c = read
	return nil
}

var (
	_ json.Marshaler   = Config{}
	_ json.Unmarshaler = (*Config)(nil)
)

package request

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// MarshalJSON returns an object with all three fields, which [Limits.UnmarshalJSON] reads. Durations are in seconds:
//
//	{"timeout":30,"max_total":1800,"reset_on_progress":true}
func (l Limits) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Timeout         json.RawMessage `json:"timeout"`
		MaxTotal        json.RawMessage `json:"max_total"`
		ResetOnProgress bool            `json:"reset_on_progress"`
	}{setting.Number(l.Timeout), setting.Number(l.MaxTotal), l.ResetOnProgress})
}

// UnmarshalJSON reads an object with any of the keys timeout, max_total and reset_on_progress. A duration is a number
// of seconds or a string such as "30m". A settings file can therefore contain the limits per method of [Options]:
//
//	{"tools/call": {"timeout": 30, "max_total": "30m", "reset_on_progress": true}, "resources/*": {"timeout": 10}}
//
// A field whose key is absent keeps its value, and a JSON null in place of the object changes nothing. Unknown keys are
// ignored, except a likely misspelling of one of the three: a difference in one letter, in case or in underscores. For
// a misspelling, a repeated key and an invalid value, the error is a [*timeout.ConfigError], and l is unchanged.
func (l *Limits) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	members, once := setting.Object(data)
	if members == nil {
		return &timeout.ConfigError{Key: "limits", Value: string(data), Accepted: `an object such as {"timeout": 30, "max_total": "30m"}`}
	}
	read := *l
	duration := func(d *time.Duration) func(json.RawMessage) (accepted string) {
		return func(value json.RawMessage) string {
			var ok bool
			if *d, ok = setting.Duration(value); !ok {
				return setting.AcceptedDuration
			}
			return ""
		}
	}
	fields := map[string]func(json.RawMessage) (accepted string){
		"timeout":   duration(&read.Timeout),
		"max_total": duration(&read.MaxTotal),
		"reset_on_progress": func(value json.RawMessage) string {
			read.ResetOnProgress = string(value) == "true"
			if !read.ResetOnProgress && string(value) != "false" {
				return "true or false"
			}
			return ""
		},
	}
	keys := slices.Sorted(maps.Keys(fields))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		bad := &timeout.ConfigError{Key: key, Value: string(members[key])}
		if !once {
			bad.Accepted = "each key once"
		} else if meant := setting.Misspelled(key, keys); meant != "" {
			bad.Accepted = "the key " + meant
		} else if set := fields[key]; set != nil {
			bad.Accepted = set(members[key])
		}
		if bad.Accepted != "" {
			return bad
		}
	}
	*l = read
	return nil
}

var (
	_ json.Marshaler   = Limits{}
	_ json.Unmarshaler = (*Limits)(nil)
)

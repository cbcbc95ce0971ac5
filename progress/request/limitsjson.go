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
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value, accepted := members[key], ""
		duration := func(d *time.Duration) {
			var ok bool
			if *d, ok = setting.Duration(value); !ok {
				accepted = setting.AcceptedDuration
			}
		}
		meant := setting.Misspelled(key, limitKeys)
		switch {
		case !once:
			accepted = "each key once"
		case meant != "":
			accepted = "the key " + meant
		case key == "timeout":
			duration(&read.Timeout)
		case key == "max_total":
			duration(&read.MaxTotal)
		case key == "reset_on_progress":
			if read.ResetOnProgress = string(value) == "true"; !read.ResetOnProgress && string(value) != "false" {
				accepted = "true or false"
			}
		}
		if accepted != "" {
			return &timeout.ConfigError{Key: key, Value: string(value), Accepted: accepted}
		}
	}
	*l = read
	return nil
}

var limitKeys = []string{"max_total", "reset_on_progress", "timeout"}

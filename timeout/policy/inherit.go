package policy

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The sources of a limit. The source of a limit from a variable is the name of the variable.
const (
	fromRequest = "request"
	fromCeiling = "request, cut to max_timeout"
	fromTool    = "tool"
	fromDefault = "default"
	cutToTotal  = ", cut to the timeout"
	cutToHalf   = ", cut to half the timeout"
)

// An inheritance records which of a tool's Limits were read from a text, and which were copied from the policy's
// default. It is not a field of Tool, because a Tool that a program creates has none.
type inheritance struct {
	limits *timeout.Config // the tool's Limits; if the tool has other Limits now, the inheritance is void
	base   timeout.Config  // the limits that were inherited
	keys   map[string]bool // the keys that were in the text
}

// read returns the inheritance of a tool after its text was read. before and after are the tool's Limits before and
// after that, and base the limits that the tool inherited if before is nil. ok is false if there is no inheritance.
func (i inheritance) read(text json.RawMessage, before, after *timeout.Config, base timeout.Config) (_ inheritance, ok bool) {
	given := make(map[string]bool)
	switch {
	case after == nil:
		return inheritance{}, false
	case before == nil:
	case i.limits == before:
		base = i.base
		maps.Copy(given, i.keys)
	default: // Limits that the program has set
		return inheritance{}, false
	}
	members, _ := setting.Object(text)
	for key := range members {
		given[key] = true
	}
	return inheritance{after, base, given}, true
}

// from returns the source, fromTool or fromDefault, of the limit with the key. limit returns that limit of a Config.
func (i inheritance) from(limits *timeout.Config, key string, limit func(*timeout.Config) time.Duration) string {
	if limits == nil || limits == i.limits && !i.keys[key] && limit(limits) == limit(&i.base) {
		return fromDefault
	}
	return fromTool
}

package policy

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An inheritance says which of a tool's Limits were read from a text, and which the text has left to the
// policy's default. It is not a field of Tool because a Tool that a program makes has no inheritance.
type inheritance struct {
	limits *timeout.Config // the tool's Limits; if other Limits have replaced them, the inheritance does not count
	base   timeout.Config  // what was inherited
	keys   map[string]bool // the keys that were in the text
}

// read returns the inheritance of a tool after its text was read. before are its Limits before that,
// and base what they inherited if there were none.
func (i inheritance) read(text json.RawMessage, before, after *timeout.Config, base timeout.Config) (_ inheritance, ok bool) {
	given := make(map[string]bool)
	switch {
	case after == nil:
		return inheritance{}, false
	case before == nil:
	case i.limits == before:
		base = i.base
		maps.Copy(given, i.keys)
	default: // the program's own
		return inheritance{}, false
	}
	members, _ := setting.Object(text)
	for key := range members {
		given[key] = true
	}
	return inheritance{after, base, given}, true
}

// from returns where the limit with the key comes from. limit selects that limit of a Config.
func (i inheritance) from(limits *timeout.Config, key string, limit func(*timeout.Config) time.Duration) string {
	if limits == nil || limits == i.limits && !i.keys[key] && limit(limits) == limit(&i.base) {
		return fromDefault
	}
	return fromTool
}

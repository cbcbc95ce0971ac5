package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SetDefault makes the limits of a settings file the process default, as [timeout.SetDefault] does. The text has the
// form that [Parse] reads; its tools have no effect. MCP_TIMEOUT and MCP_IDLE_TIMEOUT of the environment take
// precedence, and a text that sets no limit leaves the process default unchanged:
//
//	data, err := os.ReadFile("settings.json")
//	...
//	notes, err := policy.SetDefault(data)
//
// The notes are sentences for the log: which limits of the file the environment overrides, and which values were
// corrected or may have been meant in another unit. The error is that of Parse, or a [*timeout.ConfigError] for a
// variable that cannot be read; the process default is then unchanged. SetDefault is safe for concurrent use.
func SetDefault(data []byte) (notes []string, err error) {
	data = withoutMark(data)
	read, err := Parse(data)
	if err != nil || read.Default == nil {
		return nil, err
	}
	given := *read.Default
	r, err := (&Policy{Default: &given}).configured("")
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		key, env, from string
		file, now      time.Duration
	}{
		{"timeout", envTotal, r.total, given.Total, r.Total},
		{"idle_timeout", envIdle, r.idle, given.Idle, r.Idle},
	} {
		if l.from == l.env && slices.Contains(topKeys(data), l.key) {
			notes = append(notes, fmt.Sprintf("%s=%s overrides %s %s of the file", l.env, setting.Number(l.now), l.key, limit(l.file)))
		}
	}
	for _, d := range r.doubts {
		if d.warning != "" {
			notes = append(notes, d.warning)
		}
	}
	c, warnings := r.Normalize()
	timeout.SetDefault(c)
	return append(notes, warnings...), nil
}

// topKeys returns the keys at the top of a policy that Parse has read.
func topKeys(data []byte) []string {
	members, _ := setting.Object(data)
	if inner, nested := members[keyMCP]; nested {
		members, _ = setting.Object(inner)
	}
	return slices.Collect(maps.Keys(members))
}

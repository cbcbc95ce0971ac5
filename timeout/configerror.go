package timeout

import (
	"fmt"
	"log/slog"
)

// A ConfigError is a setting that could not be read: its key, its value, and what would have been
// accepted. The configuration in force stays in force.
type ConfigError struct {
	Key      string // such as MCP_TIMEOUT
	Value    string // as it was given
	Accepted string // in words
	Tool     string // the tool whose limits were asked for; may be empty
}

// Error returns key, value and what is accepted, in one line.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("timeout: %s=%q: want %s", e.Key, e.Value, e.Accepted)
}

// Format adds the tool to the text where the verb is %+v.
func (e *ConfigError) Format(s fmt.State, verb rune) {
	type raw ConfigError
	format(s, verb, e, (*raw)(e), nil, note{"tool ", e.Tool})
}

// LogValue is a group of the text and the tool.
func (e *ConfigError) LogValue() slog.Value { return logText(e, e.Tool) }

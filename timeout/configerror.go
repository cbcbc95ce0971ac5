package timeout

import (
	"fmt"
	"log/slog"
)

// A ConfigError reports a setting or an argument that is not valid: its key, its value, and what is
// accepted. Nothing was changed or started.
type ConfigError struct {
	Key      string // such as MCP_TIMEOUT
	Value    string // the value as it was given
	Accepted string // the accepted values, in words
	Tool     string // the tool whose limits were asked for; may be empty
}

// Error returns the key, the value and what is accepted, in one line.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("timeout: %s=%q: want %s", e.Key, e.Value, e.Accepted)
}

// Format implements [fmt.Formatter]. %+v adds the tool to the text.
func (e *ConfigError) Format(s fmt.State, verb rune) {
	type raw ConfigError
	format(s, verb, e, (*raw)(e), nil, aboutTool(e.Tool))
}

// LogValue returns a group of the text and the tool.
func (e *ConfigError) LogValue() slog.Value { return logText(e, e.Tool) }

// misuse returns the value of a panic about an argument that must not be nil.
func misuse(argument string) *ConfigError {
	return &ConfigError{Key: argument, Value: "nil", Accepted: "one that is not nil"}
}

package timeout

import (
	"fmt"
	"log/slog"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// A ConfigError reports an invalid setting or argument: its key, its value, and the accepted values. Nothing was
// changed or started.
type ConfigError struct {
	Key      string // such as MCP_TIMEOUT
	Value    string // the value as it was given
	Accepted string // the accepted values, in words
	Tool     string // the tool whose limits the setting is about, or ""
}

// Error returns the key, the value and the accepted values, in one line if Accepted is one. A long key
// is cut to 256 bytes, and a long value to 64.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("timeout: %s=%q: want %s", texts.Name(e.Key), texts.Short(e.Value, 64), e.Accepted)
}

// Format implements [fmt.Formatter]. %+v adds the tool to the text.
func (e *ConfigError) Format(s fmt.State, verb rune) {
	type raw ConfigError
	format(s, verb, e, (*raw)(e), nil, aboutTool(e.Tool))
}

// LogValue returns a group of the text and, if there is one, the tool.
func (e *ConfigError) LogValue() slog.Value { return logText(e, e.Tool) }

// misuse returns the value to panic with if an argument is nil and must not be.
func misuse(argument string) *ConfigError {
	return &ConfigError{Key: argument, Value: "nil", Accepted: "one that is not nil"}
}

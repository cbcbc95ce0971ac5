package timeout

import (
	"fmt"
	"log/slog"
	"strings"
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

// ConfigErrors are several settings that could not be read. errors.As finds each of them.
type ConfigErrors []*ConfigError

// Err returns nil where there is no error, a lone error as it is, and else all of them.
func (all ConfigErrors) Err() error {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// Error returns a line for each error.
func (all ConfigErrors) Error() string {
	var lines []string
	for _, e := range all {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each of the errors.
func (all ConfigErrors) Unwrap() []error {
	var errs []error
	for _, e := range all {
		errs = append(errs, e)
	}
	return errs
}

// Format adds the tool to the text where the verb is %+v.
func (all ConfigErrors) Format(s fmt.State, verb rune) {
	format(s, verb, all, []*ConfigError(all), nil, note{"tool ", all.tool()})
}

// LogValue is a group of the text and the tool.
func (all ConfigErrors) LogValue() slog.Value { return logText(all, all.tool()) }

// tool is the tool that the errors are about: they come from one attempt to read its limits.
func (all ConfigErrors) tool() string {
	if len(all) == 0 {
		return ""
	}
	return all[0].Tool
}

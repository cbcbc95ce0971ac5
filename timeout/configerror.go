package timeout

import (
	"fmt"
	"log/slog"
	"strings"
)

// A ConfigError says which setting could not be read, what it was, and what would
// have been accepted. Whatever was in force stays in force.
type ConfigError struct {
	Key      string // such as MCP_TIMEOUT
	Value    string // as it was given
	Accepted string // in words
	Tool     string // whose limits were asked for, see Policy.Resolve; may be empty
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

// configErrors are all the settings that could not be read, where that is more than one.
type configErrors []*ConfigError

func (all configErrors) Error() string {
	var lines []string
	for _, e := range all {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

func (all configErrors) Unwrap() []error {
	var errs []error
	for _, e := range all {
		errs = append(errs, e)
	}
	return errs
}

func (all configErrors) Format(s fmt.State, verb rune) {
	format(s, verb, all, []*ConfigError(all), nil, note{"tool ", all[0].Tool})
}

func (all configErrors) LogValue() slog.Value { return logText(all, all[0].Tool) }

// nameTool puts the tool into the errors of this file.
func nameTool(err error, tool string) {
	switch e := err.(type) {
	case *ConfigError:
		e.Tool = tool
	case configErrors:
		for _, e := range e {
			e.Tool = tool
		}
	}
}

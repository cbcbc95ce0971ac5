package timeout

import "fmt"

// A ConfigError says which setting could not be read, what it was, and what would
// have been accepted. Whatever was in force stays in force.
type ConfigError struct {
	Key      string // such as MCP_TIMEOUT
	Value    string // as it was given
	Accepted string // in words
}

// Error returns key, value and what is accepted, in one line.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("timeout: %s=%q: want %s", e.Key, e.Value, e.Accepted)
}

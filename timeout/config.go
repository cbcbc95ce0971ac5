package timeout

import (
	"fmt"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// DefaultGrace is the time that a cancelled function has to return if [Config.Grace] is 0. It leaves a subprocess 5 s
// between SIGTERM and SIGKILL and 1 s to collect its output.
const DefaultGrace = 7 * time.Second

// A Config holds the limits of an execution. A limit of 0 is off, and the zero Config has no limits: only the
// caller's context and TOOL_DEADLINE bound the execution. This holds wherever a Config is used. To keep the limits
// that apply otherwise, give no Config, or nil where a *Config is expected.
//
// Any value is allowed; [Config.Normalize] corrects limits that make no sense.
type Config struct {
	// Total is the longest time that the function may run before its context is cancelled, regardless of heartbeats.
	// 0 means no total, and so does a negative value, with a warning.
	Total time.Duration
	// Idle is the longest time that may pass without a heartbeat before the function's context is cancelled. 0 means no
	// idle check, and so does a negative value, with a warning. A value above Total becomes Total, with a warning.
	Idle time.Duration
	// Grace is the longest time that the function may take to return after its context was cancelled. A function that
	// takes longer is abandoned. 0 means DefaultGrace. A negative value means no grace: the function is abandoned at
	// once.
	Grace time.Duration
	// Reserve is the time before the end of the total or of an enclosing total, or before the caller's deadline or
	// TOOL_DEADLINE, at which the execution begins to close, so that the function can finish its work; see
	// [Closing]. 0 means no reserve, and so does a negative value, with a warning. A value that is not below Total
	// becomes half of Total, with a warning.
	Reserve time.Duration
}

// Default returns a total of 30 min and an idle limit of 2 min. With MCP_TIMEOUT and MCP_IDLE_TIMEOUT
// applied, as [FromEnv] does, these limits are the process default until [SetDefault] is called.
func Default() Config { return Config{Total: 1800 * time.Second, Idle: 120 * time.Second} }

// FastTools returns a total of 1 min and an idle limit of 30 s, for tools that answer in seconds.
func FastTools() Config { return Config{Total: 60 * time.Second, Idle: 30 * time.Second} }

// NoIdleCheck returns a total of 3 min and no idle limit, for tools that send no heartbeats.
func NoIdleCheck() Config { return Config{Total: 180 * time.Second} }

// UnboundedTotal returns no total and an idle limit of 2 min, for tools that may run for
// hours as long as they make progress.
func UnboundedTotal() Config { return Config{Idle: 120 * time.Second} }

// Normalize returns the limits as they are enforced, and a warning for each limit that it had to change. A negative
// limit or reserve becomes 0. An idle limit above the total, which could never be reached, becomes the total. A reserve
// that is not below the total becomes half of it. A Grace does not change.
func (c Config) Normalize() (Config, []string) {
	if c.sound() {
		return c, nil
	}
	return c.corrected() // a separate method, because it takes addresses, for which every run would allocate
}

func (c Config) corrected() (Config, []string) {
	var warnings []string
	for _, v := range []struct {
		name, meaning string
		value         *time.Duration
	}{
		{"total timeout", "0 (no total limit)", &c.Total},
		{"idle timeout", "0 (no idle check)", &c.Idle},
		{"reserve", "0 (no reserve)", &c.Reserve},
	} {
		if *v.value < 0 {
			warnings = append(warnings, fmt.Sprintf("%s %v is negative; using %s", v.name, *v.value, v.meaning))
			*v.value = 0
		}
	}
	if c.Total > 0 && c.Idle > c.Total {
		warnings = append(warnings, fmt.Sprintf("idle timeout %v exceeds total timeout %v; using %v", c.Idle, human.Duration(c.Total), human.Duration(c.Total)))
		c.Idle = c.Total
	}
	if c.Total > 0 && c.Reserve >= c.Total {
		warnings = append(warnings, fmt.Sprintf("reserve %v is not below total timeout %v; using %v", c.Reserve, human.Duration(c.Total), human.Duration(c.Total/2)))
		c.Reserve = c.Total / 2
	}
	return c, warnings
}

// sound reports whether corrected would change nothing. It also finds a negative total, since a valid idle limit
// exceeds it.
func (c Config) sound() bool {
	return c.Idle >= 0 && c.Reserve >= 0 && (c.Total == 0 || c.Idle <= c.Total && c.Reserve < c.Total)
}

func (c Config) grace() time.Duration {
	if c.Grace == 0 {
		return DefaultGrace
	}
	return c.Grace
}

// sessionMargin is the time that a transport session has beyond the total of the executions that it carries.
const sessionMargin = 30 * time.Second

// SessionTimeout returns the timeout for a transport session that carries executions with these limits and must
// outlive them: the total plus 30 s (at most the longest Duration), or 0, which is no timeout, if there is no total.
// A Grace of more than 30 s must be added to the result.
func (c Config) SessionTimeout() time.Duration {
	switch {
	case c.Total <= 0:
		return 0
	case c.Total > math.MaxInt64-sessionMargin:
		return math.MaxInt64
	}
	return c.Total + sessionMargin
}

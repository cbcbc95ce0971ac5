package timeout

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// The environment variables of the process default (SPEC 2.7).
const (
	envTotal = "MCP_TIMEOUT"
	envIdle  = "MCP_IDLE_TIMEOUT"
)

// FromEnv returns [Default] with MCP_TIMEOUT as its total and MCP_IDLE_TIMEOUT as its idle limit, if these variables
// are set. Both are in seconds, decimals allowed. 0 switches a limit off. A negative number is kept, and
// [Config.Normalize] warns about it. A nil lookup means [os.LookupEnv].
//
// A program need not call FromEnv: until [SetDefault] is called, its result is the process default. A program that
// calls FromEnv can refuse to start if a variable cannot be read, or change the result before it passes it to
// SetDefault. FromEnv waits for lookup without a limit. Package policy reads these variables itself.
//
// A value of 10 000 (2 h 47 min) or more is accepted with a warning, because some hosts set variables of these names
// in milliseconds.
//
// If a value is not a plain decimal number, as an empty one is not, or a Duration cannot hold it exactly, err wraps
// a [*ConfigError] for each such variable. The Config is then zero and must not be used.
func FromEnv(lookup func(string) (string, bool)) (c Config, warnings []string, err error) {
	c = Default()
	var bad []error
	for _, v := range []struct {
		key string
		d   *time.Duration
	}{{envTotal, &c.Total}, {envIdle, &c.Idle}} {
		text, ok := setting.Seconds.Env(lookup, v.key, v.d)
		if !ok {
			bad = append(bad, &ConfigError{Key: v.key, Value: text, Accepted: setting.Seconds.Accepted})
		} else if w := setting.Doubt(v.key, text, *v.d); w != "" {
			warnings = append(warnings, w)
		}
	}
	switch len(bad) {
	case 0:
		return c, warnings, nil
	case 1:
		return Config{}, nil, bad[0]
	}
	return Config{}, nil, errors.Join(bad...)
}

// An environment holds the limits that the variables of the process set.
type environment struct {
	limits   Config // Default if the variables could not be read
	warnings []string
	err      error
	silent   atomic.Bool // whether nothing is left to log
}

// theEnvironment returns the environment, which its first call reads. A later os.Setenv changes no limit.
var theEnvironment = sync.OnceValue(func() *environment {
	env := new(environment)
	env.limits, env.warnings, env.err = FromEnv(nil)
	if env.err != nil {
		env.limits = Default()
	}
	limits, warnings := env.limits.Normalize() // normalised once, so that no execution repeats the warnings
	env.limits, env.warnings = limits, append(env.warnings, warnings...)
	env.silent.Store(env.err == nil && len(env.warnings) == 0)
	return env
})

var processDefault atomic.Pointer[Config]

// SetDefault makes c the configuration of every execution that starts from now on and is given no Config. Executions in
// progress keep their limits. A program calls SetDefault once, in main. It is safe for concurrent use.
//
// Until SetDefault is called, the configuration is the result of [FromEnv], read once, when it is first needed. If a
// variable cannot be read, [Default] applies. An unreadable variable, a value that may have been meant in
// milliseconds, and the warnings of [Config.Normalize] are logged once, to the logger of the first execution that
// uses this configuration and has a logger.
//
// SetDefault(Config{}) removes all limits. [Config.Normalize] corrects values that make no sense, and each execution
// that starts with them logs the warnings.
func SetDefault(c Config) { processDefault.Store(&c) }

// ProcessDefault returns the configuration of an execution that is given no Config. If [SetDefault] has been called,
// c is its argument and set is true; otherwise c is [Default] with MCP_TIMEOUT and MCP_IDLE_TIMEOUT of the
// environment applied and normalised, or Default alone if one of these variables cannot be read, and set is false.
// ProcessDefault is safe for concurrent use.
func ProcessDefault() (c Config, set bool) {
	if c := processDefault.Load(); c != nil {
		return *c, true
	}
	return theEnvironment().limits, false
}

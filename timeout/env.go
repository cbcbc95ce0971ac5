package timeout

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// The environment variables (SPEC 2.7).
const (
	envTotal = "MCP_TIMEOUT"
	envIdle  = "MCP_IDLE_TIMEOUT"
)

// FromEnv returns [Default] with MCP_TIMEOUT as its total and MCP_IDLE_TIMEOUT as its
// idle limit if they are set. Both are in seconds, decimals allowed. 0 switches a limit
// off. A negative number is kept, so that [Config.Normalize] warns about it. A nil lookup means
// [os.LookupEnv].
//
// A program need not call FromEnv: until [SetDefault] is called, its result is the process default.
// A program that does call it can refuse to start if a variable cannot be read, or can change the
// result before it sets it. FromEnv waits for lookup, which no limit bounds. Package policy reads these variables
// itself.
//
// A value of 10 000 or more, which is 2 h 47 min, is accepted with a warning, because some hosts set
// variables of these names in milliseconds.
//
// Any other text, even the empty string, is an error that wraps a [*ConfigError] for each bad
// variable. The Config is then zero and must not be used.
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

// An environment holds the values of the variables of the process, as they were read.
type environment struct {
	limits   Config // the preset if they could not be read
	warnings []string
	err      error
	silent   atomic.Bool // everything has been logged
}

// theEnvironment reads the variables when the first execution needs the process default, and not
// again, so that a call of os.Setenv changes no limit.
var theEnvironment = sync.OnceValue(func() *environment {
	env := new(environment)
	env.limits, env.warnings, env.err = FromEnv(nil)
	if env.err != nil {
		env.limits = Default()
	}
	limits, warnings := env.limits.Normalize() // here, so that not each execution repeats the warnings
	env.limits, env.warnings = limits, append(env.warnings, warnings...)
	env.silent.Store(env.err == nil && len(env.warnings) == 0)
	return env
})

var processDefault atomic.Pointer[Config]

// SetDefault makes c the configuration of every execution that starts from now on and is given no
// Config. Executions in progress keep their limits. A program calls SetDefault once, in main. It is
// safe for concurrent use.
//
// Until it is called, the configuration is [Default] with MCP_TIMEOUT and MCP_IDLE_TIMEOUT
// applied, as [FromEnv] does, read once, when the first execution needs it. If one of them
// cannot be read, Default stays in force. An unreadable variable, a value that may have been meant in
// milliseconds, and the warnings of [Config.Normalize] are logged once, to the logger of the
// first execution that uses this configuration and has a logger.
//
// SetDefault(Config{}) removes all limits. Values that make no sense are corrected as
// [Config.Normalize] describes, and each execution that starts with them logs the warnings.
func SetDefault(c Config) { processDefault.Store(&c) }

// ProcessDefault returns the configuration of an execution that is given no Config. If [SetDefault]
// has been called, c is its argument and set is true; otherwise c is [Default] with the values of the
// environment and set is false. ProcessDefault is safe for concurrent use.
func ProcessDefault() (c Config, set bool) {
	if c := processDefault.Load(); c != nil {
		return *c, true
	}
	return theEnvironment().limits, false
}

package timeout

import (
	"errors"
	"log/slog"
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
// idle limit, both in seconds, decimals allowed, where they are set. 0 switches a limit
// off. A negative number is kept for [Config.Normalize] to warn about. A nil lookup means
// [os.LookupEnv].
//
// A program need not call it: until [SetDefault] is called, this is what applies. A program
// that calls it can refuse to start where a variable cannot be read, and can set a default
// that differs from the preset. Package policy reads these variables by itself.
//
// A value of 10 000 or more, which is 2 h 47 min, is taken, with a warning: some hosts set
// variables of these names in milliseconds.
//
// Anything that is not such a number, the empty string included, is an error that holds a
// [*ConfigError] for each bad variable, and the Config is zero: do not use it.
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

// An environment is what the variables of the process have said when they were read.
type environment struct {
	limits   Config // the preset where they could not be read
	warnings []string
	err      error
	silent   atomic.Bool // nothing is left to be logged
}

// theEnvironment is read when the first execution needs the process default, and not again:
// a limit that changes because something has called os.Setenv would surprise everybody.
var theEnvironment = sync.OnceValue(func() *environment {
	env := new(environment)
	env.limits, env.warnings, env.err = FromEnv(nil)
	if env.err != nil {
		env.limits = Default()
	}
	limits, warnings := env.limits.Normalize() // here, or each execution has to say it again
	env.limits, env.warnings = limits, append(env.warnings, warnings...)
	env.silent.Store(env.err == nil && len(env.warnings) == 0)
	return env
})

// logEnvironment logs what is wrong with the variables to the logger of the first execution
// that takes its limits from them and has one.
func (e *Execution) logEnvironment(env *environment) {
	if e.log == nil || env.silent.Swap(true) {
		return
	}
	for _, w := range env.warnings {
		e.logAttrs(slog.LevelWarn, w)
	}
	if env.err != nil {
		e.logAttrs(slog.LevelWarn, "the environment cannot be read; the default limits stay in force", slog.Any("error", env.err))
	}
}

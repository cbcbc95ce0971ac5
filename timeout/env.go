package timeout

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The environment variables (SPEC 2.7).
const (
	envTotal      = "MCP_TIMEOUT"
	envIdle       = "MCP_IDLE_TIMEOUT"
	envToolSuffix = "_TIMEOUT_MS"
	envNone       = "-" // in a Policy: no variable
)

const (
	acceptedSeconds = "seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond"
	acceptedMillis  = "milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000"
)

// doubtful is from where on a number of seconds may have been meant as milliseconds: hosts
// set variables of the same names for purposes of their own.
const doubtful = 10_000 * time.Second

// FromEnv returns [Default] with MCP_TIMEOUT as its total and MCP_IDLE_TIMEOUT as its
// idle limit, both in seconds, decimals allowed, where they are set. 0 switches a limit
// off. A negative number is kept for [Config.Normalize] to warn about. lookup is
// [os.LookupEnv] when nil.
//
// A program need not call it: until [SetDefault] is called, this is what applies. A program
// that calls it can refuse to start where a variable cannot be read, and can set a default
// that differs from the preset. A [Policy] reads these variables by itself.
//
// A value of 10 000 or more, which is 2 h 47 min, is taken, with a warning: some hosts set
// variables of these names in milliseconds.
//
// Anything that is not such a number, the empty string included, is an error that holds a
// [*ConfigError] for each bad variable, and the Config is zero: do not use it.
func FromEnv(lookup func(string) (string, bool)) (c Config, warnings []string, err error) {
	c = Default()
	all, err := c.overlayEnv(lookup, envTotal, envIdle)
	if err != nil {
		return Config{}, nil, err
	}
	for _, d := range all {
		if d.key != "" {
			warnings = append(warnings, d.String())
		}
	}
	return c, warnings, nil
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
	env.silent.Store(env.err == nil && len(env.warnings) == 0)
	return env
})

// logEnvironment logs what is wrong with the variables to the logger of the first execution
// that takes its limits from them and has one.
func (e *execution) logEnvironment(env *environment) {
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

// A doubt is a value in the environment that may have been meant in another unit.
type doubt struct {
	key, value string        // no key: there is no doubt
	read       time.Duration // the value as it is taken
}

// String says what the value means and what it would mean in milliseconds.
func (d doubt) String() string {
	millis := d.read / 1000
	return fmt.Sprintf("%s=%s is in seconds, so it means %.1f hours; in milliseconds it would be %v: for that, set %s=%s",
		d.key, d.value, d.read.Hours(), millis, d.key, seconds(millis))
}

// overlayEnv sets what the variables with these names say, both in seconds.
func (c *Config) overlayEnv(lookup func(string) (string, bool), total, idle string) (d [2]doubt, err error) {
	var bad configErrors
	for i, v := range [2]struct {
		key, hosts string // hosts know the latter
		limit      *time.Duration
	}{{total, envTotal, &c.Total}, {idle, envIdle, &c.Idle}} {
		value, err := fromEnv(lookup, v.key, parseSeconds, acceptedSeconds, v.limit)
		if err != nil {
			bad = append(bad, err)
		}
		if value != "" && v.key == v.hosts && *v.limit >= doubtful {
			d[i] = doubt{key: v.key, value: value, read: *v.limit}
		}
	}
	switch len(bad) {
	case 0:
		return d, nil
	case 1:
		return d, bad[0]
	}
	return d, bad
}

// fromEnv sets what one variable says, and returns its value, "" if it is not set.
func fromEnv(lookup func(string) (string, bool), key string, parse func(string) (time.Duration, bool), accepted string, to *time.Duration) (string, *ConfigError) {
	if key == envNone {
		return "", nil
	}
	if lookup == nil {
		lookup = os.LookupEnv
	}
	s, ok := lookup(key)
	if !ok {
		return "", nil
	}
	d, ok := parse(s)
	if !ok {
		return "", &ConfigError{Key: key, Value: s, Accepted: accepted}
	}
	*to = d
	return s, nil
}

// parseSeconds reads a plain decimal number of seconds without going through a
// float: 0.1 is exactly 100 ms, and what does not fit a Duration, or would be cut to
// another value, is refused. strconv.ParseFloat would take NaN, Inf, 0x1p4 and 1e9.
func parseSeconds(s string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if point && fraction == "" {
		return 0, false
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 9 {
		return 0, false
	}
	return parseUnits(whole+fraction+strings.Repeat("0", 9-len(fraction)), whole, negative, time.Nanosecond)
}

// parseMillis reads a whole number of milliseconds.
func parseMillis(s string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	return parseUnits(digits, digits, negative, time.Millisecond)
}

// parseUnits reads digits as a number of units; whole must not be empty.
func parseUnits(digits, whole string, negative bool, unit time.Duration) (time.Duration, bool) {
	if whole == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(1<<63-1)/int64(unit) {
		return 0, false
	}
	if negative {
		n = -n
	}
	return time.Duration(n) * unit, true
}

package timeout

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// The environment variables (SPEC 2.7).
const (
	envTotal      = "MCP_TIMEOUT"
	envIdle       = "MCP_IDLE_TIMEOUT"
	envToolSuffix = "_TIMEOUT_MS"
)

const (
	acceptedSeconds = "seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond"
	acceptedMillis  = "milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000"
)

// FromEnv gives [Default] with MCP_TIMEOUT as its total and MCP_IDLE_TIMEOUT as its
// idle limit, both in seconds, decimals allowed, where they are set (SPEC 2.7). 0
// switches a limit off. A negative number is kept for [Config.Normalize] to warn
// about. lookup is [os.LookupEnv] when nil.
//
// Anything else, the empty string included, is an error that holds a [*ConfigError]
// for each bad variable, and the Config is zero: do not use it.
func FromEnv(lookup func(string) (string, bool)) (Config, error) {
	c := Default()
	if err := c.overlayEnv(lookup); err != nil {
		return Config{}, err
	}
	return c, nil
}

// overlayEnv sets what the two general variables say.
func (c *Config) overlayEnv(lookup func(string) (string, bool)) error {
	return errors.Join(
		fromEnv(lookup, envTotal, parseSeconds, acceptedSeconds, &c.Total),
		fromEnv(lookup, envIdle, parseSeconds, acceptedSeconds, &c.Idle),
	)
}

func fromEnv(lookup func(string) (string, bool), key string, parse func(string) (time.Duration, bool), accepted string, to *time.Duration) error {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	s, ok := lookup(key)
	if !ok {
		return nil
	}
	d, ok := parse(s)
	if !ok {
		return &ConfigError{Key: key, Value: s, Accepted: accepted}
	}
	*to = d
	return nil
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

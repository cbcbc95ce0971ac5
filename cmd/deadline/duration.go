package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// durationSyntax matches a number in the syntax of strtod(3), except NaN, followed by at most one suffix.
var durationSyntax = regexp.MustCompile(`^[ \t\n\v\f\r]*` +
	`([+-]?(?i:inf(?:inity)?|` +
	`0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|` +
	`(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))` +
	`([smhd]?)$`)

// nonzero matches a number, in lower case, that has a digit other than 0 before its exponent.
var nonzero = regexp.MustCompile(`^[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])`)

// suffixes holds the seconds in the unit of each suffix.
var suffixes = map[string]float64{"": 1, "s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

// parseDuration parses a duration as GNU timeout does: a floating-point number, which may be hexadecimal or "inf", and
// the suffix s, m, h or d, or none for seconds. A duration that is too long becomes the longest Duration, and a
// positive one that is too short becomes a nanosecond, since 0 means no limit. The error is a usageError.
func parseDuration(s string) (time.Duration, error) {
	m := durationSyntax.FindStringSubmatch(s)
	if m == nil {
		return 0, usageError("invalid time interval " + quote(s))
	}
	number := strings.ToLower(m[1])
	if strings.Contains(number, "0x") && !strings.Contains(number, "p") {
		number += "p0" // required by Go
	}
	// A number out of range is ±Inf, or a zero of the same sign if it is too small.
	seconds, _ := strconv.ParseFloat(number, 64)
	underflow := seconds == 0 && nonzero.MatchString(number)
	if seconds < 0 || underflow && math.Signbit(seconds) {
		return 0, usageError("invalid time interval " + quote(s))
	}
	ns := math.Ceil(seconds * suffixes[m[2]] * float64(time.Second))
	switch {
	case underflow:
		return 1, nil
	case ns >= math.MaxInt64:
		return math.MaxInt64, nil
	}
	return time.Duration(ns), nil
}

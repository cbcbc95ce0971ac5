package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// durationSyntax matches what strtod(3) reads, except NaN, with at most one letter after it.
var durationSyntax = regexp.MustCompile(`^[ \t\n\v\f\r]*` +
	`([+-]?(?i:inf(?:inity)?|` +
	`0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|` +
	`(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))` +
	`([smhd]?)$`)

// nonzero matches a number, in lower case, that has a digit other than 0 before its exponent.
var nonzero = regexp.MustCompile(`^[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])`)

var suffixes = map[string]float64{"": 1, "s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

// parseDuration reads a duration as GNU timeout does: a floating-point number, even hexadecimal or
// "inf", followed by s, m, h or d, or by nothing for seconds. A duration that is too long becomes the
// longest, and a duration that is too short becomes a nanosecond, since 0 means no limit.
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

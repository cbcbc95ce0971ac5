package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// durationSyntax is what strtod(3) reads, without NaN and with at most one letter behind.
var durationSyntax = regexp.MustCompile(`^[ \t\n\v\f\r]*` +
	`([+-]?(?i:inf(?:inity)?|` +
	`0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|` +
	`(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))` +
	`([smhd]?)$`)

// nonzero matches a number, in lower case, that has a digit other than 0 before its exponent.
var nonzero = regexp.MustCompile(`^[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])`)

var suffixes = map[string]float64{"": 1, "s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

// parseDuration reads a duration as GNU timeout does: a floating-point number, also a
// hexadecimal one or "inf", with s, m, h or d behind it; seconds without. What is too
// long is the longest there is. What is too short is a nanosecond, since 0 is no limit.
func parseDuration(s string) (time.Duration, error) {
	m := durationSyntax.FindStringSubmatch(s)
	if m == nil {
		return 0, usageError("invalid time interval " + quote(s))
	}
	number := strings.ToLower(m[1])
	if strings.Contains(number, "0x") && !strings.Contains(number, "p") {
		number += "p0" // which Go demands
	}
	// Out of range is ±Inf, or a zero of the same sign as what was too small for it.
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

// Package human formats numbers and durations for people, in texts and logs. Output for programs,
// such as JSON, keeps every digit.
package human

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Number formats f with at most three decimals, or with three significant digits if it is below 1,
// since no reader needs 1.4047172940000001. A value below a millionth is 0. A whole number has all
// of its digits, up to 15; a larger number has an exponent.
func Number(f float64) string {
	size := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return strconv.FormatFloat(f, 'g', -1, 64)
	case size < 1e-6:
		return "0"
	case size >= 1e15:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	decimals := 3
	for ; size < 0.1; size *= 10 {
		decimals++
	}
	s := strings.TrimRight(strconv.FormatFloat(f, 'f', decimals, 64), "0")
	return strings.TrimSuffix(s, ".")
}

// Duration rounds d to a millisecond or, below 100 ms, to three significant digits.
func Duration(d time.Duration) time.Duration {
	unit := time.Millisecond
	for unit > time.Nanosecond && d.Abs() < 100*unit {
		unit /= 10
	}
	return d.Round(unit)
}

// Package human formats numbers and durations for people, in texts and logs. Output for programs,
// such as JSON, keeps every digit.
package human

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Number formats f with at most three decimals or, if its absolute value is below 0.1, with at most
// three significant digits, since no reader needs 1.4047172940000001. It returns "0" for a value
// below a millionth, and an exponent and three significant digits for one of at least 1e15.
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

// Duration returns d rounded to a millisecond or, below 100 ms, to three significant digits.
func Duration(d time.Duration) time.Duration {
	unit := time.Millisecond
	for unit > time.Nanosecond && d.Abs() < 100*unit {
		unit /= 10
	}
	return d.Round(unit)
}

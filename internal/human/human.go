// Package human writes numbers and durations as a person would, for texts and logs. What
// programs read, such as JSON, keeps every digit.
package human

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Number writes f with at most three decimals, or with three digits where it is below 1: no
// reader needs the 1.4047172940000001 of a computer. What is below a millionth is 0. A whole
// number has all of its digits, up to 15, and beyond that an exponent.
func Number(f float64) string {
	size := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return strconv.FormatFloat(f, 'g', -1, 64)
	case size < 1e-6:
		return "0" // the steps by which progress increases where there is none are of this size
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

// Duration rounds d for a reader: to a millisecond or, below 100 ms, to three digits.
func Duration(d time.Duration) time.Duration {
	unit := time.Millisecond
	for unit > time.Nanosecond && d.Abs() < 100*unit {
		unit /= 10
	}
	return d.Round(unit)
}

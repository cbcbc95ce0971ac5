// Package setting reads durations from the text of settings, such as environment variables.
package setting

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// None, as the name of a variable, means that no variable is read.
const None = "-"

// A Unit is the unit of a setting whose text is a plain number.
type Unit struct {
	Accepted string // describes the texts that Parse accepts, for error messages; Parse also accepts negative numbers
	parse    func(string) (time.Duration, bool)
}

// The units of settings.
var (
	Seconds = Unit{"seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond", seconds}
	Millis  = Unit{"milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000", millis}
)

// Parse reads a number of units. The second result is false if text is not such a number, or if a
// time.Duration cannot hold it exactly. Negative numbers are accepted.
func (u Unit) Parse(text string) (time.Duration, bool) { return u.parse(text) }

// Env sets *d to the value of the environment variable key, and returns the variable's text. ok is
// false, and *d unchanged, if Parse does not accept the text. If the variable is not set, or key is
// [None], *d is unchanged and the result is "", true. A nil lookup means os.LookupEnv.
func (u Unit) Env(lookup func(string) (string, bool), key string, d *time.Duration) (text string, ok bool) {
	if key == None {
		return "", true
	}
	if lookup == nil {
		lookup = os.LookupEnv
	}
	text, set := lookup(key)
	if !set {
		return "", true
	}
	read, ok := u.parse(text)
	if ok {
		*d = read
	}
	return text, ok
}

// doubtful is the smallest value for which Doubt warns.
const doubtful = 10_000 * time.Second

// Doubt returns a warning if d, the value in seconds of the variable key, may have been meant in milliseconds, and
// otherwise "". text is the variable's text. Some MCP hosts set variables of the same names in milliseconds.
func Doubt(key, text string, d time.Duration) string {
	if text == "" || d < doubtful {
		return ""
	}
	meant := d / 1000
	return fmt.Sprintf("%s=%s is in seconds, so it means %.1f hours; in milliseconds it would be %v: for that, set %s=%s",
		key, text, d.Hours(), meant, key, strconv.FormatFloat(meant.Seconds(), 'f', -1, 64))
}

// seconds reads a plain decimal number without a float, so 0.1 is exactly 100 ms. It refuses a text that does not fit a
// Duration or would lose precision. strconv.ParseFloat would accept NaN, Inf, 0x1p4 and 1e9.
func seconds(s string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if point && fraction == "" {
		return 0, false
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 9 {
		return 0, false
	}
	return units(whole+fraction+strings.Repeat("0", 9-len(fraction)), whole, negative, time.Nanosecond)
}

func millis(s string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	return units(digits, digits, negative, time.Millisecond)
}

// units returns the number digits times unit. The result is false if whole, the part of the number before its point,
// is empty, if digits has anything but digits, or if the product overflows.
func units(digits, whole string, negative bool, unit time.Duration) (time.Duration, bool) {
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

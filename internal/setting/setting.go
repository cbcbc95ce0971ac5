// Package setting reads durations from the text of settings, such as environment variables.
package setting

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// None is the name of a variable that means "no variable".
const None = "-"

// A Unit is the unit of a setting whose text is a plain number.
type Unit struct {
	Accepted string // description of the accepted texts
	parse    func(string) (time.Duration, bool)
}

// The units of settings.
var (
	Seconds = Unit{"seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond", seconds}
	Millis  = Unit{"milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000", millis}
)

// Parse reads a text. It reports false if the text is not a number of units, or if a Duration
// cannot hold it exactly. Negative numbers are accepted.
func (u Unit) Parse(text string) (time.Duration, bool) { return u.parse(text) }

// Env sets d to the value of the environment variable key, and returns the variable's text. It
// reports false if the text cannot be read. If the variable is not set, or key is [None], d keeps
// its value. A nil lookup means os.LookupEnv.
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

// doubtful is the smallest value that may have been meant in milliseconds.
const doubtful = 10_000 * time.Second

// Doubt returns a warning if d, which a variable gives in seconds, may have been meant in
// milliseconds; otherwise it returns "". Hosts set variables of the same names for their own
// purposes.
func Doubt(key, text string, d time.Duration) string {
	if text == "" || d < doubtful {
		return ""
	}
	meant := d / 1000
	return fmt.Sprintf("%s=%s is in seconds, so it means %.1f hours; in milliseconds it would be %v: for that, set %s=%s",
		key, text, d.Hours(), meant, key, strconv.FormatFloat(meant.Seconds(), 'f', -1, 64))
}

// seconds reads a plain decimal number without a float, so 0.1 is exactly 100 ms. It refuses a text
// that does not fit a Duration or would lose precision. strconv.ParseFloat would accept NaN, Inf,
// 0x1p4 and 1e9.
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

// units reads digits as a number of units; whole must not be empty.
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

package setting

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// AcceptedDuration describes what [Duration] reads.
const AcceptedDuration = `seconds as a number up to 9223372036, such as 120 or 0.5, no finer than a nanosecond, or a duration in quotation marks, such as "30m"`

// Object reads one JSON object. If a key occurs twice, which encoding/json would accept, ok is false, and
// members has only that key, with its second value. If data is anything else, ok is false and members is nil.
func Object(data []byte) (members map[string]json.RawMessage, ok bool) {
	members = make(map[string]json.RawMessage)
	var twice map[string]json.RawMessage
	err := exact.Members(data, func(m exact.Member) error {
		if _, found := members[m.Key]; found {
			twice = map[string]json.RawMessage{m.Key: m.Value}
			return errors.New("given twice")
		}
		members[m.Key] = m.Value
		return nil
	})
	if err != nil {
		return twice, false
	}
	return members, true
}

// Duration reads a JSON value: a number of seconds, or a string for time.ParseDuration. The second result is
// false for anything else, and for a value that a time.Duration cannot hold exactly. A number may have
// an exponent, as in 1e3, because some encoders write exponents.
func Duration(value json.RawMessage) (time.Duration, bool) {
	var text string
	if len(value) == 0 || value[0] != '"' {
		return number(string(value))
	}
	if json.Unmarshal(value, &text) != nil {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	// ParseDuration rounds down, and a very short limit must not become 0, which means no limit. The least
	// Duration is refused, because its number of seconds is out of range as well.
	if err != nil || d == math.MinInt64 || d == 0 && strings.ContainsAny(text, "123456789") {
		return 0, false
	}
	return d, true
}

// number reads a JSON number of seconds. It returns false if seconds refuses the number, or if its exponent is below
// -30 or above 30. It applies the exponent by moving the point in the text, because a float64 would round.
func number(text string) (time.Duration, bool) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return seconds(text)
	}
	const most = 30 // a larger exponent is refused: the number is out of range, unless most of its digits are zeros
	exponent, err := strconv.Atoi(text[i+1:])
	if err != nil || exponent < -most || exponent > most {
		return 0, false
	}
	digits, negative := strings.CutPrefix(text[:i], "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" {
		return 0, false
	}
	zeros := strings.Repeat("0", most)
	point := len(zeros) + len(whole) + exponent
	digits = zeros + whole + fraction + zeros
	whole, fraction = strings.TrimLeft(digits[:point], "0"), digits[point:]
	if negative {
		return seconds("-0" + whole + "." + fraction)
	}
	return seconds("0" + whole + "." + fraction)
}

// Number returns d as a JSON number of seconds, from which [Duration] reads d again.
func Number(d time.Duration) json.RawMessage {
	sign, n := "", uint64(d)
	if d < 0 {
		sign, n = "-", -n
	}
	text := fmt.Sprintf("%s%d.%09d", sign, n/1e9, n%1e9)
	return json.RawMessage(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

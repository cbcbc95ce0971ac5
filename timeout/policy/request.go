package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	keyRequest      = "timeoutMs"
	acceptedRequest = "milliseconds as a whole number from 1 to 9223372036854, such as 120000"
)

// Requested returns the total that a request asks for, from the value of its argument timeoutMs, for [Policy.For] and
// [Policy.Resolve]. The value may have any type that a JSON decoder uses for a number: a float64, a [json.Number], a
// [json.RawMessage] or any integer. For nil, an empty RawMessage and a JSON null it returns 0, because the request
// asks for no total.
//
// For anything else, such as a string, a fraction, 0, a negative number, or more than a Duration holds, it returns a
// [*timeout.ConfigError].
func Requested(v any) (time.Duration, error) {
	var text string
	switch n := v.(type) {
	case nil:
		return 0, nil
	case float64:
		return requestFloat(n, strconv.FormatFloat(n, 'g', -1, 64))
	case json.Number:
		text = string(n)
	case json.RawMessage:
		text = strings.Trim(string(n), " \t\r\n")
		if len(n) == 0 || text == "null" {
			return 0, nil
		}
	default:
		switch r := reflect.ValueOf(v); {
		case r.CanInt():
			text = strconv.FormatInt(r.Int(), 10)
		case r.CanUint():
			text = strconv.FormatUint(r.Uint(), 10)
		case r.CanFloat():
			return requestFloat(r.Float(), fmt.Sprint(v))
		default:
			return 0, badRequest(fmt.Sprint(v))
		}
	}
	if d, ok := setting.Millis.Parse(text); ok && d > 0 && text[0] != '0' {
		return d, nil
	}
	// In JSON, 1e3 and 1000.0 are whole numbers, too.
	if strings.ContainsAny(text, ".eE") && json.Valid([]byte(text)) {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return requestFloat(f, text)
		}
	}
	return 0, badRequest(text)
}

// requestFloat converts a number of milliseconds. The comparison is negated so that NaN fails it. 1<<63 is the
// smallest positive float64 that a Duration cannot hold.
func requestFloat(ms float64, text string) (time.Duration, error) {
	if !(ms >= 1 && ms < (1<<63)/float64(time.Millisecond)) || ms != math.Trunc(ms) {
		return 0, badRequest(text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func badRequest(text string) error {
	return &timeout.ConfigError{Key: keyRequest, Value: text, Accepted: acceptedRequest}
}

package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 2.6, 2.9.
func TestRequested(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for _, tc := range []struct {
		name string
		in   any
		want time.Duration // -1: refused
	}{
		{"not given", nil, 0},
		{"null", json.RawMessage("null"), 0},
		{"a field that was not there", json.RawMessage(nil), 0},
		{"float", 1500.0, 1500 * time.Millisecond},
		{"one", 1.0, time.Millisecond},
		{"int", 1500, 1500 * time.Millisecond},
		{"above, int64", most + 1, -1},
		{"float32", float32(250), 250 * time.Millisecond},
		{"number", json.Number("120000"), 2 * time.Minute},
		{"raw", json.RawMessage(" 120000\n"), 2 * time.Minute},
		{"raw with exponent", json.RawMessage("1.2e5"), 2 * time.Minute},
		{"raw with fraction of zero", json.RawMessage("1000.0"), time.Second},
		{"the most", json.Number("9223372036854"), time.Duration(most) * time.Millisecond},
		{"above", json.Number("9223372036855"), -1},
		{"above, float", 9223372036855.0, -1},
		{"uint64", uint64(math.MaxUint64), -1},
		{"zero", 0.0, -1},
		{"negative", -1.0, -1},
		{"raw negative zero", json.RawMessage("-0"), -1},
		{"fraction", 0.5, -1},
		{"NaN", math.NaN(), -1},
		{"infinite", math.Inf(1), -1},
		{"string", "1000", -1},
		{"raw string", json.RawMessage(`"1000"`), -1},
		{"leading zero", json.RawMessage("0100"), -1},
		{"trailing text", json.RawMessage("100 1"), -1},
		{"hexadecimal", json.Number("0x1p4"), -1},
		{"empty", json.Number(""), -1},
		{"bool", true, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := policy.Requested(tc.in)
			if tc.want >= 0 {
				if got != tc.want || err != nil {
					t.Errorf("%v, %v, want %v", got, err, tc.want)
				}
				return
			}
			var bad *timeout.ConfigError
			if got != 0 || !errors.As(err, &bad) || bad.Key != "timeoutMs" || !strings.Contains(err.Error(), "1 to 9223372036854") {
				t.Errorf("%v, %v, want a ConfigError", got, err)
			}
		})
	}
}

// A stranger's text of any length makes a message of a bounded one.
func TestRequestedLongText(t *testing.T) {
	_, err := policy.Requested(strings.Repeat("x", 1<<20))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%.400v", err)
	}
	for n, cut := range map[int]bool{64: false, 65: true} {
		_, err := policy.Requested(strings.Repeat("x", n))
		if text := fmt.Sprint(err); strings.Contains(text, `..."`) != cut || strings.Count(text, "x") != 64 {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

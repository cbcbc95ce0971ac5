package setting_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// SPEC 2.9, 2.12: a JSON value is accepted if and only if a Duration holds it exactly.
func TestDuration(t *testing.T) {
	for _, tc := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{`1800`, 30 * time.Minute, true},
		{`0`, 0, true}, {`-0`, 0, true}, {`0.5`, time.Second / 2, true}, {`-1`, -time.Second, true},
		{`0.000000001`, 1, true}, {`0.0000000001`, 0, false}, {`1e-9`, 1, true}, {`1e-10`, 0, false},
		{`1e3`, 1000 * time.Second, true}, {`1.5E+2`, 150 * time.Second, true}, {`-25e-1`, -2500 * time.Millisecond, true},
		{`12345678.123456789e0`, 12345678123456789, true}, {`1234567.8123456789e1`, 12345678123456789, true},
		{`9223372036.854775807`, math.MaxInt64, true}, {`9223372036.854775808`, 0, false},
		{`-9223372036.854775807`, -math.MaxInt64, true}, {`-9223372036.854775808`, 0, false},
		{`9223372037`, 0, false}, {`1e10`, 0, false}, {`1e400`, 0, false}, {`1e-400`, 0, false}, {`1e99999999999999999999`, 0, false},
		{`"30m"`, 30 * time.Minute, true}, {`"1h30m"`, 90 * time.Minute, true}, {`"0"`, 0, true}, {`"-5s"`, -5 * time.Second, true},
		{`"1ns"`, 1, true}, {`"0.1ns"`, 0, false}, {`"0.9ns"`, 0, false}, {`"0.0ns"`, 0, true},
		{`"2562047h47m16.854775807s"`, math.MaxInt64, true}, {`"2562047h47m16.854775808s"`, 0, false}, {`"-2562047h47m16.854775808s"`, 0, false},
		{`"1800"`, 0, false}, {`""`, 0, false}, {`"soon"`, 0, false}, {`" 5s"`, 0, false}, {`"NaN"`, 0, false},
		{`null`, 0, false}, {`true`, 0, false}, {`[1]`, 0, false}, {`{}`, 0, false}, {`NaN`, 0, false}, {`Infinity`, 0, false}, {``, 0, false}, {`e5`, 0, false},
	} {
		got, ok := setting.Duration(json.RawMessage(tc.value))
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: %v, %v, want %v, %v", tc.value, got, ok, tc.want, tc.ok)
		}
		if !ok {
			continue
		}
		if again, ok := setting.Duration(setting.Number(got)); !ok || again != got {
			t.Errorf("%s: written as %s, read as %v", tc.value, setting.Number(got), again)
		}
	}
}

func TestObject(t *testing.T) {
	for _, tc := range []struct {
		text string
		want map[string]json.RawMessage
		ok   bool
	}{
		{`{}`, map[string]json.RawMessage{}, true},
		{` {"a": 1, "A": {"b": [2]}} `, map[string]json.RawMessage{"a": json.RawMessage("1"), "A": json.RawMessage(`{"b": [2]}`)}, true},
		{`{"a": 1, "b": 3, "a": 2}`, map[string]json.RawMessage{"a": json.RawMessage("2")}, false},
		{`{"a": 1, "\u0061": 2}`, map[string]json.RawMessage{"a": json.RawMessage("2")}, false},
		{`[]`, nil, false}, {`null`, nil, false}, {`5`, nil, false}, {``, nil, false}, {`{`, nil, false}, {`{"a"`, nil, false}, {`{"a":`, nil, false}, {`{"a":1`, nil, false}, {`{"a":1}}`, nil, false}, {`{} {}`, nil, false},
	} {
		got, ok := setting.Object([]byte(tc.text))
		if d := cmp.Diff(tc.want, got); d != "" || ok != tc.ok {
			t.Errorf("%s: %v\n%s", tc.text, ok, d)
		}
	}
}

// FuzzDuration compares accepted numbers with rational arithmetic.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"0", "120", "0.5", "-3", "9223372036.854775807", "1e3", "1.5E-2", "1e400", "-0.0e30", "123456789e-9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || strings.Trim(s, "-+.0123456789eE") != "" {
			return
		}
		got, ok := setting.Duration(json.RawMessage(s))
		if !ok {
			return
		}
		exact, number := new(big.Rat).SetString(s)
		if !number || exact.Mul(exact, big.NewRat(1e9, 1)).Cmp(big.NewRat(int64(got), 1)) != 0 {
			t.Errorf("%q: %v", s, got)
		}
	})
}

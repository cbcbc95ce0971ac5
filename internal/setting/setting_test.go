package setting_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// SPEC 2.9: a number is accepted if and only if a Duration holds it exactly.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		text            string
		seconds, millis time.Duration // -1: refused
	}{
		{"0", 0, 0},
		{"120", 2 * time.Minute, 120 * time.Millisecond},
		{"0.1", 100 * time.Millisecond, -1},
		{"0.000000001", 1, -1},
		{"0.0000000001", -1, -1},
		{"007.2500000000000000", 7250 * time.Millisecond, -1},
		{"9223372036.854775807", math.MaxInt64, -1},
		{"9223372036.854775808", -1, -1},
		{"9223372036854", -1, 9223372036854 * time.Millisecond},
		{"9223372036855", -1, -1},
		{"", -1, -1}, {".", -1, -1}, {"5.", -1, -1}, {".5", -1, -1}, {"+5", -1, -1}, {"1e3", -1, -1}, {"10s", -1, -1}, {" 1", -1, -1}, {"١", -1, -1},
	} {
		for _, u := range []struct {
			setting.Unit
			want time.Duration
		}{{setting.Seconds, tc.seconds}, {setting.Millis, tc.millis}} {
			got, ok := u.Parse(tc.text)
			if ok != (u.want >= 0) || ok && got != u.want {
				t.Errorf("%q: %v, %v, want %v", tc.text, got, ok, u.want)
			}
			if got, ok := u.Parse("-" + tc.text); ok && got != -u.want {
				t.Errorf("-%s: %v", tc.text, got)
			}
		}
	}
}

func TestEnv(t *testing.T) {
	lookup := func(key string) (string, bool) {
		return map[string]string{"A": "7", "BAD": "soon"}[key], key != "UNSET"
	}
	for _, tc := range []struct {
		key, text string
		ok        bool
		want      time.Duration
	}{{"A", "7", true, 7 * time.Second}, {"BAD", "soon", false, 1}, {"UNSET", "", true, 1}, {setting.None, "", true, 1}} {
		d := time.Duration(1)
		if text, ok := setting.Seconds.Env(lookup, tc.key, &d); text != tc.text || ok != tc.ok || d != tc.want {
			t.Errorf("%s: %q, %v, %v", tc.key, text, ok, d)
		}
	}
	t.Setenv("SETTING_TEST", "3")
	var d time.Duration
	if _, ok := setting.Millis.Env(nil, "SETTING_TEST", &d); !ok || d != 3*time.Millisecond {
		t.Errorf("the process: %v, %v", d, ok)
	}
}

// SPEC 2.7: the warning begins at 10 000 s.
func TestDoubt(t *testing.T) {
	if w := setting.Doubt("K", "9999.999999999", 10_000*time.Second-1); w != "" {
		t.Error(w)
	}
	if w := setting.Doubt("K", "", 20_000*time.Second); w != "" {
		t.Errorf("not from the environment: %s", w)
	}
	const want = "K=10000 is in seconds, so it means 2.8 hours; in milliseconds it would be 10s: for that, set K=10"
	if w := setting.Doubt("K", "10000", 10_000*time.Second); w != want {
		t.Error(w)
	}
}

// FuzzSeconds compares accepted texts with rational arithmetic.
func FuzzSeconds(f *testing.F) {
	for _, s := range []string{"0", "120", "0.5", "-3", "9223372036.854775807", "00.10", "", "1e3", "5.", "∞"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := setting.Seconds.Parse(s)
		if !ok {
			return
		}
		exact, number := new(big.Rat).SetString(s)
		if !number || strings.Trim(s, "-.0123456789") != "" || exact.Mul(exact, big.NewRat(1e9, 1)).Cmp(big.NewRat(int64(got), 1)) != 0 {
			t.Errorf("%q: %v", s, got)
		}
	})
}

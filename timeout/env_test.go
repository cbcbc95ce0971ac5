package timeout_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

func env(vars map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		v, ok := vars[key]
		return v, ok
	}
}

// SPEC 2.7.
func TestFromEnv(t *testing.T) {
	def := timeout.Default()
	for _, tc := range []struct {
		name string
		vars map[string]string
		want timeout.Config
	}{
		{"nothing set", nil, def},
		{"both", map[string]string{"MCP_TIMEOUT": "90", "MCP_IDLE_TIMEOUT": "0.5"}, timeout.Config{Total: 90 * time.Second, Idle: 500 * time.Millisecond}},
		{"total only", map[string]string{"MCP_TIMEOUT": "3600"}, timeout.Config{Total: time.Hour, Idle: def.Idle}},
		{"off", map[string]string{"MCP_TIMEOUT": "0", "MCP_IDLE_TIMEOUT": "0.000"}, timeout.Config{}},
		{"exact", map[string]string{"MCP_TIMEOUT": "0.1", "MCP_IDLE_TIMEOUT": "0.000000001"}, timeout.Config{Total: 100 * time.Millisecond, Idle: 1}},
		{"zeros", map[string]string{"MCP_TIMEOUT": "007.2500000000000000"}, timeout.Config{Total: 7250 * time.Millisecond, Idle: def.Idle}},
		{"negative is kept for Normalize", map[string]string{"MCP_TIMEOUT": "-1.5"}, timeout.Config{Total: -1500 * time.Millisecond, Idle: def.Idle}},
		{"the maximum", map[string]string{"MCP_TIMEOUT": "9223372036.854775807"}, timeout.Config{Total: math.MaxInt64, Idle: def.Idle}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := timeout.FromEnv(env(tc.vars))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// malformed is no number of seconds, and mostly none of milliseconds either.
var malformed = []string{
	"", " ", "abc", "NaN", "nan", "Inf", "inf", "+Inf", "-Inf", "infinity", "∞",
	"1e3", "1E3", "1e-3", "0x10", "0x1p4", "0b1", "0o7", "1_000", "1,5", "1.5.2", "1..5",
	".", "-", "+", "+5", "--5", "-.", "5.", ".5", "-.5", "5-", "10s", "2m", "120 ", " 120", "120\n", "120\x00",
	"1 2", "١٢", "１２", "½", "true", "null", "0.0000000001", "1.0000000005",
	"9223372036.854775808", "9223372037", "99999999999999999999999999", "-9223372036.854775808",
}

// SPEC 2.9: the key, the value and what is accepted, and nothing in force.
func TestFromEnvRefuses(t *testing.T) {
	const accepted = "seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond"
	for _, key := range []string{"MCP_TIMEOUT", "MCP_IDLE_TIMEOUT"} {
		for _, value := range malformed {
			got, _, err := timeout.FromEnv(env(map[string]string{key: value}))
			var bad *timeout.ConfigError
			if !errors.As(err, &bad) || *bad != (timeout.ConfigError{Key: key, Value: value, Accepted: accepted}) || got != (timeout.Config{}) {
				t.Errorf("%s=%s: %+v, %v", key, value, got, err)
			}
		}
	}
}

func TestFromEnvNamesEveryBadVariable(t *testing.T) {
	_, _, err := timeout.FromEnv(env(map[string]string{"MCP_TIMEOUT": "soon", "MCP_IDLE_TIMEOUT": "never"}))
	if err == nil || !strings.Contains(err.Error(), `MCP_TIMEOUT="soon"`) || !strings.Contains(err.Error(), `MCP_IDLE_TIMEOUT="never"`) {
		t.Errorf("%v", err)
	}
}

const (
	totalDoubt = `MCP_TIMEOUT=120000 is in seconds, so it means 33.3 hours; in milliseconds it would be 2m0s: for that, set MCP_TIMEOUT=120`
	idleDoubt  = `MCP_IDLE_TIMEOUT=10000 is in seconds, so it means 2.8 hours; in milliseconds it would be 10s: for that, set MCP_IDLE_TIMEOUT=10`
)

// SPEC 2.7: FromEnv returns what is doubtful.
func TestDoubtOfFromEnv(t *testing.T) {
	for _, tc := range []struct {
		total, idle string
		want        []string
	}{
		{"9999.999999999", "9999.999999999", nil},
		{"120000", "60", []string{totalDoubt}},
		{"0", "10000", []string{idleDoubt}},
		{"120000", "10000", []string{totalDoubt, idleDoubt}},
		{"-120000", "60", nil},
	} {
		c, warnings, err := timeout.FromEnv(env(map[string]string{"MCP_TIMEOUT": tc.total, "MCP_IDLE_TIMEOUT": tc.idle}))
		if diff := cmp.Diff(tc.want, warnings); diff != "" || err != nil || c == (timeout.Config{}) {
			t.Errorf("%s, %s: %v, %v (-want +got):\n%s", tc.total, tc.idle, c, err, diff)
		}
	}
	// Nothing is taken of what is refused.
	c, warnings, err := timeout.FromEnv(env(map[string]string{"MCP_TIMEOUT": "soon", "MCP_IDLE_TIMEOUT": "10000"}))
	if c != (timeout.Config{}) || warnings != nil || err == nil {
		t.Errorf("%v, %q, %v", c, warnings, err)
	}
}

// FuzzFromEnv compares with rational arithmetic: an accepted value is exact.
func FuzzFromEnv(f *testing.F) {
	for _, s := range malformed {
		f.Add(s)
	}
	for _, s := range []string{"0", "120", "0.5", "-3", "9223372036.854775807", "00.10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, _, err := timeout.FromEnv(env(map[string]string{"MCP_TIMEOUT": s, "MCP_IDLE_TIMEOUT": "0"}))
		plain := s != "" && strings.Trim(s, "-.0123456789") == ""
		exact, ok := new(big.Rat).SetString(s)
		if !plain || !ok {
			if err == nil {
				t.Fatalf("%q: %v", s, got.Total)
			}
			return
		}
		exact.Mul(exact, big.NewRat(1e9, 1))
		fits := exact.IsInt() && exact.Num().IsInt64() && exact.Num().Int64() != math.MinInt64
		switch {
		case err == nil && (!fits || exact.Num().Int64() != int64(got.Total)):
			t.Fatalf("%q: %d ns, want %s", s, got.Total, exact)
		case err != nil && fits && s[len(s)-1] != '.' && s[0] != '.' && !strings.HasPrefix(s, "-."):
			t.Fatalf("%q is refused: %v", s, err)
		}
	})
}

package timeout_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 2.2, 2.3, 3.20.
func TestNormalize(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name     string
		in, want timeout.Config
		warnings []string
	}{
		{"zero", timeout.Config{}, timeout.Config{}, nil},
		{"sound", timeout.Default(), timeout.Default(), nil},
		{"idle equals total", timeout.Config{Total: s, Idle: s}, timeout.Config{Total: s, Idle: s}, nil},
		{"idle a nanosecond over total", timeout.Config{Total: s, Idle: s + 1}, timeout.Config{Total: s, Idle: s},
			[]string{"idle timeout 1.000000001s exceeds total timeout 1s; using 1s"}},
		{"idle without total", timeout.Config{Idle: 1000 * s}, timeout.Config{Idle: 1000 * s}, nil},
		{"negative total", timeout.Config{Total: -1, Idle: s}, timeout.Config{Idle: s},
			[]string{"total timeout -1ns is negative; using 0 (no total limit)"}},
		{"negative idle", timeout.Config{Total: s, Idle: -s}, timeout.Config{Total: s},
			[]string{"idle timeout -1s is negative; using 0 (no idle check)"}},
		{"negative grace", timeout.Config{Grace: -s}, timeout.Config{Grace: -s}, nil},
		{"reserve of the total", timeout.Config{Total: s, Reserve: s}, timeout.Config{Total: s, Reserve: s / 2},
			[]string{"reserve 1s is not below total timeout 1s; using 500ms"}},
		{"reserve below the total", timeout.Config{Total: s, Reserve: s - 1}, timeout.Config{Total: s, Reserve: s - 1}, nil},
		{"reserve without a total", timeout.Config{Reserve: s}, timeout.Config{Reserve: s}, nil},
		{"negative reserve", timeout.Config{Total: s, Reserve: -1}, timeout.Config{Total: s},
			[]string{"reserve -1ns is negative; using 0 (no reserve)"}},
		{"all of it", timeout.Config{Total: math.MinInt64, Idle: -2, Grace: -3}, timeout.Config{Grace: -3}, []string{
			"total timeout -2562047h47m16.854775808s is negative; using 0 (no total limit)",
			"idle timeout -2ns is negative; using 0 (no idle check)",
		}},
		{"the maximum", timeout.Config{Total: math.MaxInt64, Idle: math.MaxInt64}, timeout.Config{Total: math.MaxInt64, Idle: math.MaxInt64}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, warnings := tc.in.Normalize()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 2.10.
func TestSessionTimeout(t *testing.T) {
	for _, tc := range []struct {
		name        string
		total, want time.Duration
	}{
		{"default", 1800 * time.Second, 1830 * time.Second},
		{"off", 0, 0},
		{"negative is off", -5, 0},
		{"a nanosecond", 1, 30*time.Second + 1},
		{"saturates", math.MaxInt64 - 1, math.MaxInt64},
		{"just fits", math.MaxInt64 - 30*time.Second, math.MaxInt64},
	} {
		if got := (timeout.Config{Total: tc.total}).SessionTimeout(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

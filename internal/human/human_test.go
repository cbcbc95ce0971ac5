package human_test

import (
	"math"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", -3: "-3", 10: "10", 100: "100", 1234567: "1234567", 1e6: "1000000", 999999999999999: "999999999999999",
		1.4047172940000001: "1.405", 3.000000000001: "3", 0.5: "0.5", 1.25: "1.25", 37.5: "37.5", -1.0005e3: "-1000.5",
		12345.678901: "12345.679", 99.9996: "100", 0.30000000000000004: "0.3", 0.0123456: "0.0123", 0.000123456: "0.000123",
		0.0999999: "0.1", 1e-6: "0.000001", -1e-6: "-0.000001", 0.99e-6: "0", 1e-12: "0", 1e15: "1e+15", 1e21: "1e+21", math.MaxFloat64: "1.8e+308",
		math.Inf(1): "+Inf",
	} {
		if got := human.Number(f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
	if got := human.Number(math.NaN()); got != "NaN" {
		t.Error(got)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 999: "999ns", 1234: "1.23µs", 123456: "123µs", 1234567: "1.23ms", 12345678: "12.3ms",
		99999999: "100ms", 123456789: "123ms", 999999999: "1s", 1404717294: "1.405s", time.Minute: "1m0s",
		time.Minute - 1: "1m0s", 75*time.Second + 1234567: "1m15.001s", 26*time.Hour + 1: "26h0m0s", -1404717294: "-1.405s",
		math.MaxInt64: "2562047h47m16.854775807s", math.MinInt64: "-2562047h47m16.854775808s",
	} {
		if got := human.Duration(d).String(); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

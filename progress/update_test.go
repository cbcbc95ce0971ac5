package progress_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress"
)

// SPEC 3.17: an update tells a person how far a stopped tool had come.
func TestUpdateString(t *testing.T) {
	for _, tc := range []struct {
		update progress.Update
		want   string
	}{
		{progress.Update{}, ""},
		{progress.Update{Message: "linking"}, "linking"},
		{progress.Update{Progress: 37, Total: 100, Message: "file"}, "file 37 of 100"},
		{progress.Update{Progress: 37, Total: 100, Message: "file 37 of 100"}, "file 37 of 100"},
		{progress.Update{Progress: 37, Total: 100}, "37 of 100"},
		{progress.Update{Progress: 37}, "37"},
		{progress.Update{Total: 100}, "0 of 100"},
		{progress.Update{Progress: 1234567, Message: "states"}, "states (1234567)"},
		{progress.Update{Progress: 0.25, Total: 1}, "0.25 of 1"},
		{progress.Update{Progress: 1.4047172940000001, Total: 20, Message: "at it"}, "at it 1.405 of 20"},
		{progress.Update{Progress: 3.000000000001, Total: 10.0004}, "3 of 10"},
		{progress.Update{Progress: 2e6, Total: 1e7}, "2000000 of 10000000"},
		{progress.Update{Progress: 1.4047, Message: "took 1.4047 s"}, "took 1.4047 s"},
		{progress.Update{Progress: 1.4047, Message: "took 1.405 s"}, "took 1.405 s"},
		{progress.Update{Progress: 3, Total: math.Inf(1), Message: "x"}, "x (3)"},
		{progress.Update{Progress: 3, Total: -1}, "3"},
		{progress.Update{Progress: 1, Message: "starting"}, "starting (1)"},
		{progress.Update{Progress: 1, Message: "starting 1 of 3"}, "starting 1 of 3"},
		{progress.Update{Progress: 0.000006}, ""},
		{progress.Update{Progress: 0.000006, Message: "linking"}, "linking"},
		{progress.Update{Progress: 0.000006, Total: 3, Message: "file"}, "file 0 of 3"},
		{progress.Update{Progress: 7.000006, Total: 10}, "7 of 10"},
		{progress.Update{Progress: 1e21}, "1e+21"},
		{progress.Update{Progress: -2, Message: "floor"}, "floor (-2)"},
		{progress.Update{Progress: math.NaN(), Total: 100, Message: "x"}, "x"},
		{progress.Update{Progress: math.Inf(-1), Message: "x"}, "x"},
	} {
		if got := tc.update.String(); got != tc.want {
			t.Errorf("%#v: %q, want %q", tc.update, got, tc.want)
		}
	}
}

// SPEC 7.3: the steps are multiples of a millionth, exactly, and always larger.
func TestStep(t *testing.T) {
	p := 0.0
	for n := 1; n <= 100_000; n++ {
		if p = progress.Step(p); p != float64(n)/1e6 {
			t.Fatalf("step %d is %v", n, p)
		}
	}
	for p, want := range map[float64]string{
		0: "0.000001", 7: "7.000001", 0.29: "0.290001", 1.4047172940000001: "1.404718", -5: "-4.999999", -1e-6: "0", -0.5e-6: "0", 1e-12: "0.000001",
		math.SmallestNonzeroFloat64: "0.000001", 1e6: "1000000.000001", 1 << 33: "8589934592.000002", 1e12: "1000000000000.0001",
		1 << 53: "9007199254740994", 1e21: "1000000000000000100000", -1 << 53: "-9007199254740991", math.MaxFloat64: "+Inf", math.Inf(1): "+Inf",
		-math.MaxFloat64: strconv.FormatFloat(-math.Nextafter(math.MaxFloat64, 0), 'f', -1, 64),
	} {
		if got := strconv.FormatFloat(progress.Step(p), 'f', -1, 64); got != want {
			t.Errorf("after %v: %s, want %s", p, got, want)
		}
	}
}

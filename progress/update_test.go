package progress_test

import (
	"math"
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
		{progress.Update{Progress: 1234567, Message: "states"}, "states 1234567"},
		{progress.Update{Progress: 0.25, Total: 1}, "0.25 of 1"},
		{progress.Update{Progress: 1.4047172940000001, Total: 20, Message: "at it"}, "at it 1.405 of 20"},
		{progress.Update{Progress: 3.000000000001, Total: 10.0004}, "3 of 10"},
		{progress.Update{Progress: 2e6, Total: 1e7}, "2000000 of 10000000"},
		{progress.Update{Progress: 1.4047, Message: "took 1.4047 s"}, "took 1.4047 s"},
		{progress.Update{Progress: 1.4047, Message: "took 1.405 s"}, "took 1.405 s"},
		{progress.Update{Progress: 3, Total: math.Inf(1), Message: "x"}, "x 3"},
		{progress.Update{Progress: 3, Total: -1}, "3"},
		{progress.Update{Progress: math.NaN(), Total: 100, Message: "x"}, "x"},
		{progress.Update{Progress: math.Inf(-1), Message: "x"}, "x"},
	} {
		if got := tc.update.String(); got != tc.want {
			t.Errorf("%#v: %q, want %q", tc.update, got, tc.want)
		}
	}
}

package procgroup_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// What the text leaves out of the output is in ExampleResult_Text.
func TestTextOfAResult(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result procgroup.Result
		want   string
	}{
		{"ended by itself", procgroup.Result{}, "Exit code 0.\n"},
		{"failed", procgroup.Result{ExitCode: 2}, "Exit code 2.\n"},
		{
			"aborted", procgroup.Result{ExitCode: 130, Reason: procgroup.Aborted, Message: "TLC process was aborted."},
			"TLC process was aborted.\nExit code 130.\n",
		},
		{"with a file of which nothing is missing", procgroup.Result{Spill: procgroup.Spill{Path: "/tmp/x"}}, "Exit code 0.\n"},
		{"all in a file", procgroup.Result{Combined: procgroup.Output{Dropped: 7}, Spill: procgroup.Spill{Path: "/tmp/x", Bytes: 7}}, "Exit code 0.\nAll of the output: /tmp/x\n"},
		{
			"the beginning in a file", procgroup.Result{Combined: procgroup.Output{Dropped: 7}, Spill: procgroup.Spill{Path: "/tmp/x", Bytes: 3, Err: io.ErrShortWrite}},
			"Exit code 0.\nThe first 3 bytes of the output: /tmp/x\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.result.Text()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

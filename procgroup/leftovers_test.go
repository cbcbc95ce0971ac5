//go:build linux

package procgroup_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// SPEC 6.23: Leftovers names a few of many, and a list that may be incomplete says so.
func TestLeftoversOfAList(t *testing.T) {
	few := strings.Repeat("sleep (process 1), ", 8)
	for _, tt := range []struct {
		n         int
		truncated bool
		want      string
	}{
		{0, true, ""},
		{1, true, "sleep (process 1), and perhaps others"},
		{8, true, few + "and perhaps others"},
		{9, true, few + "and at least 1 more"},
		{1, false, "sleep (process 1)"},
		{20, false, few + "and 12 more"},
	} {
		list := procgroup.ProcessList{Processes: slices.Repeat([]procgroup.ProcessInfo{{Pid: 1, Args: []string{"sleep", "60"}}}, tt.n), Truncated: tt.truncated}
		if tt.want != "" {
			tt.want = "Killed because the command had ended: " + tt.want + ".\n"
		}
		if got := (&procgroup.Result{Killed: list}).Leftovers(); got != tt.want {
			t.Errorf("%d: %q, want %q", tt.n, got, tt.want)
		}
	}
}

// A shell that has left a process in the background ends with 0.
func ExampleResult_Leftovers() {
	res, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo $!"))
	fmt.Println(res.ExitCode, err)
	pid := strings.TrimSpace(res.Stdout.String())
	same := strings.NewReplacer(pid, "4711", ", and perhaps others", "") // which is there where the machine is busy
	fmt.Print(same.Replace(res.Leftovers()))
	// Output:
	// 0 <nil>
	// Killed because the command had ended: sleep (process 4711).
}

//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// isSleep waits until the process that a shell has started last is sleep, and no copy of the shell any more.
const isSleep = "while read name </proc/$!/comm && [ $name != sleep ]; do :; done; "

// SPEC 6.23: a command that ends well says what of it was killed then, in every containment, with the name, the id and
// the reason; and so do the log and the Finished hook. TestLeftoversAreToldApart of internal/simulate has what else there is to say.
func TestLeftoversKilled(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		t.Parallel()
		var log bytes.Buffer
		var told string
		hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { told = s.Leftovers }}
		r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; "+isSleep+"exit 0"), contained,
			procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), timeout.WithHooks(hooks)))
		if err != nil || r.ExitCode != 0 || r.Reason != procgroup.Exited {
			t.Fatalf("%v, %d", err, r.ExitCode)
		}
		pid := strings.TrimSpace(r.Stdout.String())
		mustBeDead(t, undying([]int{atoi(pid)}))
		if len(r.Survivors)+len(r.Unidentified) > 0 { // on a busy machine it may die late, which was said
			return
		}
		names := "sleep (process " + pid + ")"
		if r.Killed.Truncated { // there was no time to look at all of them
			names += ", and perhaps others"
		}
		want := "Killed because the command had ended: " + names + ".\n"
		for _, got := range []string{r.Leftovers(), told} {
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if want := "Exit code 0.\n" + want + pid + "\n"; r.Text() != want {
			t.Errorf("%q, want %q", r.Text(), want)
		}
		if len(r.Killed.Processes) != 1 || len(r.Kept.Processes) != 0 || !strings.Contains(log.String(), `killed="`+names+`"`) {
			t.Errorf("%v, %v, %s", r.Killed, r.Kept, log.String())
		}
	})
}

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

//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// isSleep waits until the process that a shell has started last is sleep, and no copy of the shell any more.
const isSleep = "while read name </proc/$!/comm && [ $name != sleep ]; do :; done; "

// others is how a line of Leftovers ends if a busy machine has cut the list.
func others(l procgroup.ProcessList) string {
	if l.Truncated {
		return ", and perhaps others"
	}
	return ""
}

// SPEC 6.23: a command that ends well says what of it was killed then, in every containment, with the name, the id and
// the reason; and so does the log.
func TestLeftoversKilled(t *testing.T) {
	t.Parallel()
	for name, sleep := range map[string]string{"early": "", "late": "sleep 0.3; "} { // ids are looked at one by one at first
		everyContainment(t, func(t *testing.T, contained procgroup.Option) {
			t.Parallel()
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				var told string
				hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { told = s.Leftovers }}
				var r *procgroup.Result
				var err error
				for tries := 0; tries == 0 || len(r.Survivors)+len(r.Unidentified) > 0 && tries < 5; tries++ { // on a busy machine time may run out
					log.Reset()
					r, err = procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; "+isSleep+sleep+"exit 0"), contained,
						procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), timeout.WithHooks(hooks)))
				}
				if err != nil || r.ExitCode != 0 || r.Reason != procgroup.Exited {
					t.Fatalf("%v, %d", err, r.ExitCode)
				}
				pid := strings.TrimSpace(r.Stdout.String())
				names := "sleep (process " + pid + ")" + others(r.Killed)
				if want := "Killed because the command had ended: " + names + ".\n"; r.Leftovers() != want {
					t.Errorf("%q, want %q", r.Leftovers(), want)
				}
				if want := "Exit code 0.\n" + r.Leftovers() + pid + "\n"; r.Text() != want {
					t.Errorf("%q, want %q", r.Text(), want)
				}
				if len(r.Killed.Processes) != 1 || len(r.Kept.Processes) != 0 || !strings.Contains(log.String(), `killed="`+names+`"`) {
					t.Errorf("%v, %v, %s", r.Killed, r.Kept, log.String())
				}
				if told != r.Leftovers() {
					t.Errorf("the hook got %q", told)
				}
				mustBeDead(t, []int{atoi(pid)})
			})
		})
	}
}

// SPEC 6.23: Leftovers says that a process runs on that WithOrphans keeps, also if it holds the output.
func TestLeftoversKept(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 60 & echo $!; "+isSleep), contained, procgroup.WithOrphans())
		if err != nil {
			t.Fatal(err)
		}
		pid := strings.TrimSpace(r.Stdout.String())
		want := "Running on after the command: sleep (process " + pid + ")" + others(r.Kept) + ".\nAnother process still held the output; what it wrote later may be missing.\n"
		if r.Leftovers() != want || len(r.Killed.Processes) != 0 {
			t.Errorf("%q, want %q; killed %v", r.Leftovers(), want, r.Killed)
		}
		_ = exec.Command("kill", pid).Run()
	})
}

// SPEC 6.23: Leftovers is empty for a command that has left nothing or was stopped, and names a few of many.
func TestLeftoversOfFewAndMany(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		t.Parallel()
		for range 2 {
			if r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "true | cat; (exit 0) & wait"), contained); err != nil || r.Leftovers() != "" {
				t.Errorf("%v, %q", err, r.Leftovers())
			}
		}
		var r *procgroup.Result
		for tries := 0; tries == 0 || len(r.Survivors)+len(r.Unidentified) > 0 && tries < 5; tries++ { // on a busy machine time may run out
			r, _ = procgroup.Run(context.Background(), exec.Command("sh", "-c", "i=0; while [ $i -lt 20 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); "+isSleep+" done"), contained)
		}
		got := regexp.MustCompile(`process \d+`).ReplaceAllString(r.Leftovers(), "process N")
		want := "Killed because the command had ended: " + strings.Repeat("sleep (process N), ", 8) + "and 12 more.\n"
		if r.Killed.Truncated { // on a busy machine, and said
			n := len(r.Killed.Processes)
			want = "Killed because the command had ended: " + strings.Repeat("sleep (process N), ", min(n, 8)) + "and perhaps others.\n"
			if n > 8 {
				want = strings.Replace(want, "perhaps others", fmt.Sprintf("at least %d more", n-8), 1)
			}
		}
		if got != want {
			t.Errorf("%q, want %q; %+v", got, want, r.Killed)
		}
	})
}

// SPEC 6.23: a list that may be incomplete says so.
func TestLeftoversOfATruncatedList(t *testing.T) {
	for n, want := range map[int]string{
		0: "",
		1: "sleep (process 1), and perhaps others",
		8: strings.Repeat("sleep (process 1), ", 8) + "and perhaps others",
		9: strings.Repeat("sleep (process 1), ", 8) + "and at least 1 more",
	} {
		list := procgroup.ProcessList{Processes: slices.Repeat([]procgroup.ProcessInfo{{Pid: 1, Args: []string{"sleep", "60"}}}, n), Truncated: true}
		if want != "" {
			want = "Killed because the command had ended: " + want + ".\n"
		}
		if got := (&procgroup.Result{Killed: list}).Leftovers(); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
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

//go:build unix

package simulate_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

const sec = time.Second

func limits(total, idle time.Duration) procgroup.Option {
	return procgroup.Limits{Total: total, Idle: idle}
}

func TestScenarios(t *testing.T) {
	Test(t, []Scenario{
		{
			Name:    "output renews the idle limit, and the request to end is obeyed", // SPEC 6.1, 6.2
			Script:  Script{{Do: Sleep, D: sec}, say, forever},
			Options: []procgroup.Option{limits(time.Minute, 2*sec)},
			Want:    []string{"3s 1: SIGTERM, dies of SIGTERM", "3s wait: idle timeout 124"},
		},
		{
			Name:    "what ignores the request is killed after the grace", // SPEC 6.1
			Script:  Script{{Do: Ignore, Signal: syscall.SIGTERM}, {Do: Fork, Script: Script{forever}}, forever},
			Options: []procgroup.Option{limits(2*sec, 0), procgroup.Stop{Grace: 3 * sec}},
			Want: []string{
				"2s 1: SIGTERM, SIGCONT", "2s 1.1: SIGTERM, SIGCONT",
				"5s 1: SIGKILL, dies of SIGKILL", "5s 1.1: SIGKILL, dies of SIGKILL", "5s wait: total timeout 124",
			},
			Check: func(r *Run) {
				if !r.Result.Escalated {
					r.Error("not escalated")
				}
			},
		},
		{
			Name:    "an abort kills at once", // SPEC 6.1
			Script:  Script{forever},
			Options: []procgroup.Option{limits(time.Minute, 0)},
			Events:  []Event{{2 * sec, func(r *Run) { r.Cancel(errors.New("enough")) }}},
			Want:    []string{"2s 1: SIGKILL, dies of SIGKILL", "2s wait: aborted 130"},
		},
		{
			Name:    "a daemon is killed when the command has ended by itself", // SPEC 6.6, 6.7
			Script:  Script{{Do: Daemon, Script: Script{{Do: Close, FD: 1}, {Do: Close, FD: 2}, forever}}, {Do: Sleep, D: sec}, {Do: Exit, N: 3}},
			Options: []procgroup.Option{limits(time.Minute, 0)},
			Want:    []string{"1s 1: exit 3", "1s 1.1: SIGKILL, dies of SIGKILL", "1s wait: exited 3"},
		},
		{
			Name:    "a wait for input that begins while the processes are listed is not in the result", // SPEC 6.18, guarantee 1
			Script:  Script{{Do: Sleep, D: 1900 * time.Millisecond}, {Do: Read, N: 1}},
			Options: []procgroup.Option{limits(0, 2398*time.Millisecond)},
			Set:     func(r *Run) { r.Cmd.Stdin, r.Faults.Snapshot = r.Silence(), 5*time.Millisecond },
			Check:   sameWait("tool wrote nothing."),
		},
		{
			Name:    "a wait for input that ends while the processes are listed is in the result", // SPEC 6.18, guarantee 1
			Script:  Script{{Do: Fork, Script: Script{{Do: Sleep, D: 2300 * time.Millisecond}, say}}, say, {Do: Read, N: 1}},
			Options: []procgroup.Option{limits(0, 2298*time.Millisecond)},
			Set:     func(r *Run) { r.Cmd.Stdin, r.Faults.Snapshot = r.Silence(), 5*time.Millisecond },
			Check:   sameWait("probably waits for input: a"),
		},
	}...)
}

// sameWait demands that the error and the result say the same of a wait for input.
func sameWait(text string) func(*Run) {
	return func(r *Run) {
		if got := r.Result.Input.String(); !strings.Contains(r.Err.Error(), got) || !strings.HasSuffix(r.Err.Error(), text) {
			r.Errorf("the error is %q, the result says %q", r.Err, got)
		}
		if want := strings.Contains(text, "waits"); want != (r.Result.Input.Pid != 0) {
			r.Errorf("the result has %+v", r.Result.Input)
		}
	}
}

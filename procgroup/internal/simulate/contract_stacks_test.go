//go:build unix

package simulate_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// SPEC 6.22: programs are asked for their stacks before a time limit stops them, and for nothing else. They have 200 ms of
// the kill grace, or half of it, and less if all output has ended.
func TestStacksTime(t *testing.T) {
	const total = 2 * sec
	writer := Script{{Do: Trap, Signal: syscall.SIGQUIT, Script: Script{say}}, say, forever}
	ends := Script{{Do: Trap, Signal: syscall.SIGQUIT, Script: Script{{Do: Exit, N: 2}}}, say, forever}
	with := func(more ...procgroup.Option) []procgroup.Option {
		return append([]procgroup.Option{limits(total, 0), procgroup.Stop{Stacks: true}}, more...)
	}
	Test(t, []Scenario{
		{Name: "200 ms", Script: writer, Options: with(),
			Want: []string{"2s 1: SIGQUIT", "2.2s 1: SIGTERM, dies of SIGTERM", "2.2s wait: total timeout 124"}},
		{Name: "half of a short grace", Script: writer, Options: with(procgroup.Stop{Stacks: true, Grace: 100 * time.Millisecond}),
			Want: []string{"2s 1: SIGQUIT", "2.05s 1: SIGTERM, dies of SIGTERM", "2.05s wait: total timeout 124"}},
		{Name: "it ends", Script: ends, Options: with(), Want: []string{"2s 1: SIGQUIT, exit 2", "2s wait: total timeout 124"}},
		{Name: "it does not write any", Script: Script{forever}, Options: with(), Want: []string{"2s 1: SIGTERM, dies of SIGTERM", "2s wait: total timeout 124"}},
		{Name: "they are found late", Script: writer, Options: with(), Set: func(r *Run) { r.Faults.Stacks = time.Hour },
			Want: []string{"2.2s 1: SIGQUIT", "2.4s 1: SIGTERM, dies of SIGTERM", "2.4s wait: total timeout 124"}},
		{Name: "without the option", Script: writer, Options: []procgroup.Option{limits(total, 0)},
			Want: []string{"2s 1: SIGTERM, dies of SIGTERM", "2s wait: total timeout 124"}},
		{Name: "without a grace", Script: writer, Options: with(procgroup.Stop{Stacks: true, Grace: -1}), Want: []string{"2s 1: SIGKILL, dies of SIGKILL", "2s wait: total timeout 124"}},
		{Name: "an abort", Script: writer, Options: with(procgroup.Stop{Stacks: true, AbortDelay: sec}), Events: []Event{{sec, func(r *Run) { r.Cancel(errors.New("enough")) }}},
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "1s wait: aborted 130"}},
		{Name: "too much output", Script: Script{writer[0], {Do: Sleep, D: sec}, {Do: Write, FD: 1, N: 10}, forever}, Options: with(procgroup.Capture{Limit: 3}),
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "1s wait: too much output 153"}},
		{Name: "its own end", Script: Script{writer[0], {Do: Sleep, D: sec}, {Do: Exit, N: 3}}, Options: with(), Want: []string{"1s 1: exit 3", "1s wait: exited 3"}},
	}...)
}

// SPEC 6.23, 6.24: what was killed after the command had ended, what runs on, and who held the output are told apart; hooks
// are told the same.
func TestLeftoversAreToldApart(t *testing.T) {
	silent := Script{{Do: Close, FD: 1}, {Do: Close, FD: 2}, forever}
	fork := func(s Script) Step { return Step{Do: Fork, Script: s} }
	text := func(r *Run, want string) {
		r.Helper()
		if got := r.Result.Leftovers(); got != want {
			r.Errorf("%q, want %q", got, want)
		}
		if want != "" && !strings.HasPrefix(r.Result.Text(), fmt.Sprintf("Exit code %d.\n", r.Result.ExitCode)+want) {
			r.Errorf("the text is %q", r.Result.Text())
		}
	}
	names := func(all []procgroup.ProcessInfo) string {
		var each []string
		for _, p := range all {
			each = append(each, fmt.Sprintf("%q (process %d)", p.Args[0], p.Pid))
		}
		return strings.Join(each, ", ")
	}
	Test(t, []Scenario{
		{Name: "nothing", Script: Script{fork(Script{}), {Do: Sleep, D: sec}}, Options: []procgroup.Option{limits(time.Minute, 0)}, Check: func(r *Run) { text(r, "") }},
		{Name: "killed", Script: Script{fork(silent), {Do: Daemon, Script: silent}, {Do: Sleep, D: sec}}, Options: []procgroup.Option{limits(time.Minute, 0)},
			Check: func(r *Run) {
				if len(r.Result.Killed.Processes) != 2 || len(r.Result.Kept.Processes) > 0 {
					r.Fatalf("%+v", r.Result)
				}
				text(r, "Killed because the command had ended: "+names(r.Result.Killed.Processes)+".\n")
			}},
		{Name: "kept, and holds the output", Script: Script{fork(Script{forever}), {Do: Sleep, D: sec}}, Options: []procgroup.Option{limits(time.Minute, 0), procgroup.Stop{Orphans: true}},
			Check: func(r *Run) {
				if len(r.Result.Kept.Processes) != 1 || len(r.Result.Killed.Processes) > 0 {
					r.Fatalf("%+v", r.Result)
				}
				text(r, "Running on after the command: "+names(r.Result.Kept.Processes)+".\nAnother process still held the output; what it wrote later may be missing.\n")
			}},
		{Name: "not killed by the system", Script: Script{fork(append(Script{{Do: Unkillable, D: time.Hour}}, silent...)), {Do: Sleep, D: sec}}, Options: []procgroup.Option{limits(time.Minute, 0)},
			Check: func(r *Run) {
				if len(r.Result.Survivors) != 1 || len(r.Result.Killed.Processes) > 0 || !strings.HasPrefix(r.Result.Leftovers(), "Running on because the system did not kill them: ") {
					r.Errorf("%+v, %q", r.Result, r.Result.Leftovers())
				}
			}},
		{Name: "stopped by a limit", Script: Script{fork(silent), forever}, Options: []procgroup.Option{limits(sec, 0)}, Check: func(r *Run) { text(r, "") }},
	}...)
}

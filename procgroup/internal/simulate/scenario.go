//go:build unix

package simulate

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Scenario is a test of one command in simulated time.
type Scenario struct {
	Name    string
	Script  Script // of the command
	Options []procgroup.Option
	Set     func(*Run) // called before the start, to change Context, Cmd or Faults; may be nil
	Events  []Event
	Want    []string   // the lines of the [Trace]; nil means any
	Check   func(*Run) // called after the end, with Result and Err set; may be nil
}

// An Event is a function that is called At after the start of the command, unless the command has ended.
type Event struct {
	At time.Duration
	Do func(*Run)
}

// A Run is a scenario in progress, in a bubble of testing/synctest.
type Run struct {
	*testing.T
	*Machine
	Context context.Context         // the ctx of procgroup.Start
	Cancel  context.CancelCauseFunc // cancels Context
	Cmd     *exec.Cmd
	Process *procgroup.Process // nil before the start, and if the start fails
	Result  *procgroup.Result  // the result of Wait
	Err     error              // the error of Wait or, if the start fails, of procgroup.Start
}

// Test runs each scenario as a subtest, and compares its trace with Want. It also reports an error if the results of
// Start, Wait and the hooks contradict each other, or if the machine has recorded a violation.
func Test(t *testing.T, all ...Scenario) {
	t.Helper()
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, s.run)
		})
	}
}

func (s Scenario) run(t *testing.T) {
	r := &Run{T: t, Machine: New(s.Script), Cmd: &exec.Cmd{Path: "/simulated/tool", Args: []string{"tool"}}}
	r.Context, r.Cancel = context.WithCancelCause(machine.With(context.Background(), r.Machine))
	defer r.Cancel(nil)
	if s.Set != nil {
		s.Set(r)
	}
	var finished []error
	hooks := timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished = append(finished, s.Err) }})
	var err error
	if r.Process, err = procgroup.Start(r.Context, r.Cmd, append([]procgroup.Option{procgroup.WithOptions(hooks)}, s.Options...)...); err != nil {
		r.Err = err
		r.Trace.add("start", err.Error())
	} else {
		r.await(s.Events)
		if len(finished) != 1 || finished[0] != r.Err {
			t.Errorf("Finished was told %v, Wait returned %v", finished, r.Err)
		}
	}
	if got := r.Trace.Lines(); s.Want != nil && !slices.Equal(got, s.Want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(s.Want, "\n\t"))
	}
	if s.Check != nil {
		s.Check(r)
	}
	for _, wrong := range r.Off() {
		t.Error(wrong)
	}
}

// await calls the events in their own goroutines, waits for the command, and checks the results of Wait. After the
// end of the command no event begins.
func (r *Run) await(events []Event) {
	var all sync.WaitGroup
	over := make(chan struct{})
	for _, e := range events {
		all.Go(func() {
			timer := time.NewTimer(e.At)
			defer timer.Stop()
			select {
			case <-timer.C:
				e.Do(r)
			case <-over:
			}
		})
	}
	r.Result, r.Err = r.Process.Wait()
	r.Trace.add("wait", fmt.Sprintf("%v %d", r.Result.Reason, r.Result.ExitCode))
	close(over)
	all.Wait()
	if _, again := r.Process.Wait(); again != r.Err || timeout.ExitCode(r.Err) != r.Result.ExitCode {
		r.Errorf("Wait returned %v with the code %d, and then %v", r.Err, r.Result.ExitCode, again)
	}
	for k := procgroup.Exited; k <= procgroup.TooMuchOutput; k++ {
		if got := errors.Is(r.Err, k); got != (k == r.Result.Reason && k >= procgroup.WaitingForInput) {
			r.Errorf("%v after %v: errors.Is finds %v: %v", r.Err, r.Result.Reason, k, got)
		}
	}
	for _, pid := range r.Alive() {
		if kept := func(p procgroup.ProcessInfo) bool { return p.Pid == pid }; !slices.Contains(r.Result.Survivors, pid) && !slices.ContainsFunc(r.Result.Kept.Processes, kept) && r.Contains {
			r.Errorf("process %d is alive and listed nowhere", pid)
		}
	}
}

// A Trace records the events of a command, in lines with the time since the creation of the machine, the process and
// its events at that time: "2s 1.1: SIGTERM, SIGCONT, exit 3". The leader is process 1, the first process that it has
// started 1.1, and so on. The line "wait" has the reason and the exit code of the result; [Run.Say] adds lines. Lines
// with the same time are sorted by process.
type Trace struct {
	mu    sync.Mutex
	begun time.Time
	lines []line
}

type line struct {
	at             time.Duration
	process, event string
}

// add records the event what of the process who at the current time.
func (t *Trace) add(who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.begun), who, what})
}

// Say adds a line to the trace, with the process "test".
func (r *Run) Say(format string, args ...any) { r.Trace.add("test", fmt.Sprintf(format, args...)) }

// Lines returns the trace so far.
func (t *Trace) Lines() (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := slices.Clone(t.lines)
	slices.SortStableFunc(lines, func(a, b line) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return strings.Compare(a.process, b.process)
	})
	for i, l := range lines {
		if i > 0 && l.at == lines[i-1].at && l.process == lines[i-1].process {
			all[len(all)-1] += ", " + l.event
			continue
		}
		all = append(all, fmt.Sprintf("%v %s: %s", l.at, l.process, l.event))
	}
	return all
}

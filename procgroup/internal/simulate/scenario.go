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

// A Scenario is a command in simulated time, the events that happen to it, and the trace that it must leave.
type Scenario struct {
	Name    string
	Script  Script
	Options []procgroup.Option
	Set     func(*Run) // before the start: Context, Cmd, Faults
	Events  []Event
	Want    []string   // see [Trace]; nil if only Check is to judge
	Check   func(*Run) // after the end, with Result and Err
}

// An Event happens to a command at a time after its start.
type Event struct {
	At time.Duration
	Do func(*Run)
}

// A Run is a scenario that is being run, in a bubble of testing/synctest.
type Run struct {
	*testing.T
	*Machine
	Context context.Context
	Cancel  context.CancelCauseFunc // of Context
	Cmd     *exec.Cmd
	Process *procgroup.Process // nil before the start
	Result  *procgroup.Result  // what Wait has returned
	Err     error
}

// Test runs each scenario and compares its trace with the one that it wants. It also checks what holds for every
// command.
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

// await waits for the command while its events happen. Events after its end do not happen.
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

// A Trace is what was seen of a command, with times since the machine was made: "2s 1.1: SIGTERM, SIGCONT, exit 3". The
// leader is 1, the first process that it has started 1.1, and so on. The last line is "wait: " with the reason and the
// code of the result. What belongs to one instant is sorted by process; [Run.Say] adds lines.
type Trace struct {
	mu    sync.Mutex
	begun time.Time
	lines []line
}

type line struct {
	at             time.Duration
	process, event string
}

func (t *Trace) add(who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.begun), who, what})
}

// Say adds a line of a test to the trace.
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

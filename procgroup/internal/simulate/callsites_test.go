//go:build unix

package simulate_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What a command may take here: its total, its kill grace, a second for the rest, and as much again for hooks and
// log handlers, which have the grace of its execution.
const (
	siteTotal = 1500 * time.Millisecond
	siteKill  = 100 * time.Millisecond
	siteBound = siteTotal + siteKill + time.Second
)

var siteOptions = []procgroup.Option{procgroup.Limits{Total: siteTotal}, procgroup.Stop{Grace: siteKill}}

// A setup gives the command of a row code of the caller's. p waits for the start.
type setup func(s *Site, cmd *exec.Cmd, p func() *procgroup.Process) []procgroup.Option

// onMachine is a row with a command on a simulated machine, which says something and does not end by itself.
func onMachine(within time.Duration, set setup) Row {
	return Row{Within: within, Do: func(s *Site) {
		m := New(Script{say, forever})
		runSite(s, machine.With(context.Background(), m), &exec.Cmd{Path: "/simulated"}, set)
		if left := m.Alive(); len(left) > 0 {
			s.Errorf("alive: %v", left)
		}
		for _, wrong := range m.Off() {
			s.Error(wrong)
		}
	}}
}

// onInput is a row with a command that asks for input on a simulated machine.
func onInput(set setup) Row {
	return Row{Within: siteBound, Do: func(s *Site) {
		m := New(Script{say, {Do: Read, N: 1}, forever})
		runSite(s, machine.With(context.Background(), m), &exec.Cmd{Path: "/simulated", Stdin: m.Silence()}, set)
		for _, wrong := range m.Off() {
			s.Error(wrong)
		}
	}}
}

func runSite(s *Site, ctx context.Context, cmd *exec.Cmd, set setup) *procgroup.Process {
	started := make(chan *procgroup.Process, 1)
	process := func() *procgroup.Process { p := <-started; started <- p; return p }
	p, err := procgroup.Start(ctx, cmd, append(append([]procgroup.Option{}, siteOptions...), set(s, cmd, process)...)...)
	if err != nil { // a hook before the start has kept it from beginning
		return nil
	}
	started <- p
	_, _ = p.Wait()
	return p
}

// execution has an option of package timeout for the command's execution.
func execution(option func(s *Site) timeout.Option) Row {
	return onMachine(siteBound+siteKill+time.Second, func(s *Site, _ *exec.Cmd, _ func() *procgroup.Process) []procgroup.Option {
		return []procgroup.Option{procgroup.WithOptions(option(s))}
	})
}

type (
	siteWriter func()
	siteReader func()
)

// A siteError is an error of a reader's or a writer's, whose methods are the caller's code.
type siteError struct{ *Site }

func (e siteError) Error() string             { e.Hit(nil); return "bad" }
func (e siteError) Is(error) bool             { e.Hit(nil); return false }
func (e siteError) As(any) bool               { e.Hit(nil); return false }
func (e siteError) Read([]byte) (int, error)  { return 0, e }
func (e siteError) Write([]byte) (int, error) { return 0, e }

func (w siteWriter) Write(p []byte) (int, error) { w(); return len(p), nil }
func (r siteReader) Read([]byte) (int, error)    { r(); return 0, io.EOF }

// SPEC 3.24, for commands and jobs.
func TestCallSites(t *testing.T) {
	waiting := func(p func() *procgroup.Process) func() {
		return func() { p().Input(); p().Answered(); _, _ = p().Wait() }
	}
	table := Table{
		"procgroup.Capture.Each": onMachine(siteBound, func(s *Site, _ *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			return []procgroup.Option{procgroup.Capture{Each: func(procgroup.Chunk) { s.Hit(nil, waiting(p)) }}}
		}),
		"procgroup.Lines(fn)": onMachine(siteBound, func(s *Site, _ *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			return []procgroup.Option{procgroup.Capture{Each: procgroup.Lines(func(string, bool) { s.Hit(nil, waiting(p)) })}}
		}),
		"procgroup.Run(cmd)/stdout": onMachine(siteBound, func(s *Site, cmd *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			cmd.Stdout = siteWriter(func() { s.Hit(nil, waiting(p)) })
			return nil
		}),
		"procgroup.Run(cmd)/logger": execution(func(s *Site) timeout.Option {
			return timeout.WithLogger(slog.New(simLog{func() { s.Hit(nil) }}))
		}),
		"procgroup.Run(cmd)/stdin": onMachine(siteBound, func(s *Site, cmd *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			cmd.Stdin = siteReader(func() { s.Hit(nil, waiting(p)) })
			return nil
		}),
		"procgroup.Run(cmd)/errors": onMachine(siteBound, func(s *Site, cmd *exec.Cmd, _ func() *procgroup.Process) []procgroup.Option {
			cmd.Stdin, cmd.Stdout, cmd.Stderr = siteError{s}, siteError{s}, siteError{s}
			return nil
		}),
		"procgroup.Start(cmd)":          {Never: "see procgroup.Run(cmd)"},
		"procgroup.Attach(cmd)":         {Never: "see procgroup.Run(cmd)"},
		"procgroup.Process.Signal(sig)": {Never: "only its type is looked at, and the number of a signal of the system"},
		"procgroup.Stop.Closing":        {Never: "only its type is looked at, and the number of a signal of the system"},
		"procgroup.Stop.Signal":         {Never: "only its type is looked at, and the number of a signal of the system"},
		"procgroup.Spill.Err":           {Never: "an error of the system, which the library returns"},
		"procgroup.Input.Notify": onInput(func(s *Site, _ *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			return []procgroup.Option{procgroup.Input{Notify: func(procgroup.InputWait) { s.Hit(nil, waiting(p)) }}}
		}),
		"procgroup.Input.Notify/stop": onInput(func(s *Site, _ *exec.Cmd, p func() *procgroup.Process) []procgroup.Option {
			return []procgroup.Option{procgroup.Input{Stop: true, Notify: func(procgroup.InputWait) { s.Hit(nil, waiting(p)) }}}
		}),
		"procgroup.Observer.WriteStacks(fn)": {Real: true, Do: writeStacks},
		"job.Set.Start(cmd)": {Real: true, Do: func(s *Site) {
			set := new(job.Set)
			cmd := exec.Command("sh", "-c", "printf 'name? '; read x; exec sleep 1000")
			_, err := set.Start(context.Background(), cmd, procgroup.Stop{AbortDelay: siteKill}, procgroup.Input{Notify: func(procgroup.InputWait) {
				s.Hit(nil, func() { _ = set.Close() }, func() { set.List() })
			}})
			if err != nil {
				s.Error(err)
			}
			s.Await()
			_ = set.Close()
		}},
		"job.Status.Err":         {Never: "the error of procgroup.Process.Wait as it is"},
		"job.Until.Match":        {Never: "a pattern is no code; TestWaitForASlowMatch has those that take long"},
		"job.Job.Signal(sig)":    {Never: "only its type is looked at, and the number of a signal of the system"},
		"host.EndedError.Signal": {Never: "a signal of the system"},
	}
	type hook = func(context.Context, timeout.Snapshot)
	for name, set := range map[string]func(*timeout.Hooks, hook){
		"Started":  func(h *timeout.Hooks, f hook) { h.Started = f },
		"Exceeded": func(h *timeout.Hooks, f hook) { h.Exceeded = f },
		"Finished": func(h *timeout.Hooks, f hook) { h.Finished = f },
		"Context": func(h *timeout.Hooks, f hook) {
			h.Context = func(ctx context.Context, s timeout.Snapshot) context.Context { f(ctx, s); return ctx }
		},
	} {
		table["procgroup.Run(cmd)/hook "+name] = execution(func(s *Site) timeout.Option {
			var h timeout.Hooks
			set(&h, func(ctx context.Context, _ timeout.Snapshot) {
				s.Hit(ctx, func() { timeout.FromContext(ctx).Abort(errors.New("by a hook")) })
			})
			return timeout.WithHooks(h)
		})
	}
	table.Complete(t, "../..", "../../job", "../../host")
	table.Test(t, "../..", "../../job", "../../host")
}

// writeStacks calls WriteStacks of an Observer, and stops it meanwhile.
func writeStacks(s *Site) {
	cmd := performing(Script{say, forever}) // a program in Go, which writes its stacks when it is asked to
	ready, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		s.Errorf("cannot start: %v", err)
		return
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	_, _ = ready.Read(make([]byte, 1))
	o, err := procgroup.Observe(context.Background(), cmd.Process, procgroup.Activity{})
	if errors.Is(err, errors.ErrUnsupported) {
		s.Skip(err)
	}
	if err != nil {
		s.Error(err)
		return
	}
	go func() {
		defer func() { _ = recover() }()
		o.WriteStacks(func(int) bool { s.Hit(nil, o.Stop); return false })
	}()
	s.Await()
	o.Stop()
}

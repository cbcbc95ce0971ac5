package procgroup

import (
	"errors"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// complete sets r.State, r.ExitCode and p.err. fromCaller is the error of the caller's reader, writers and callback, or
// of reading the output; it is nil if none of them failed.
func (p *Process) complete(r *Result, stop *timeout.Error, fromCaller error) {
	err, reaped := p.tree.State()
	if reaped {
		r.State = p.inner.ProcessState
		p.cmd.ProcessState = r.State
	}
	joined := err // of the command and the caller's code: a writer that failed may be why the command failed
	switch {
	case err == nil:
		joined = fromCaller
	case fromCaller != nil:
		joined = errors.Join(err, fromCaller)
	}
	figures := stop
	if r.Reason == OutOfMemory {
		s := timeout.FromContext(p.running).Snapshot()
		figures = &timeout.Error{Figures: s.Figures}
	}
	switch {
	case r.Reason == OutOfMemory || stopOf(stop) != nil:
		p.err = &commandStop{reason: r.Reason, message: r.Message, err: joined, result: r, figures: figures}
	case stop != nil:
		stop.Err, stop.Result, stop.Stack = joined, r, withStacks(stop.Stack, r)
		p.err = stop
	case !reaped:
		p.err = errors.Join(errors.New("procgroup: the command has ended, but its exit status is unknown"), fromCaller)
	default:
		p.err = joined
	}
	if fromCaller == nil || stop != nil && stopOf(stop) == nil { // the exit code of a timeout.Error ignores wrapped errors
		r.ExitCode = timeout.ExitCode(p.err)
		return
	}
	// The methods of the caller's error, which ExitCode calls, may block or panic.
	final, code := p.err, make(chan int, 1)
	go capture.Guard(func() { code <- timeout.ExitCode(final) }, func(error) { close(code) })
	timer := time.NewTimer(beginTime)
	defer timer.Stop()
	r.ExitCode = exitCode(r.Reason, err)
	select {
	case n, ok := <-code:
		if ok {
			r.ExitCode = n
		}
	case <-timer.C:
	}
}

// exitCode returns the exit code of a result whose error includes an error of the caller's code, without calling the
// methods of that error. err is the error of the command itself.
func exitCode(reason Reason, err error) int {
	if reason == Exited {
		return max(timeout.ExitCode(err), 1)
	}
	return reason.exitCode()
}

// left returns the attributes of a warning about an incomplete end, or nil if there is no reason to warn. Processes
// that Orphans keeps, and the pipes that they hold, are no reason.
func (p *Process) left() (attrs []slog.Attr) {
	r := p.result
	if len(r.Killed.Processes) > 0 {
		attrs = append(attrs, slog.String("killed", r.Killed.names()))
	}
	if len(r.Survivors) > 0 {
		attrs = append(attrs, slog.Any("survivors", r.Survivors))
	}
	if r.PipeHeld && !p.stop.Orphans {
		attrs = append(attrs, slog.Bool("pipe_held", true))
	}
	if r.Unanswered > 0 {
		attrs = append(attrs, slog.Int("unanswered", r.Unanswered))
	}
	if r.Unwritten > 0 {
		attrs = append(attrs, slog.Int64("unwritten", r.Unwritten))
	}
	return attrs
}

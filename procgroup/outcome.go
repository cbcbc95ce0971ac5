package procgroup

import (
	"errors"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// complete sets r.State, r.ExitCode and p.err. fromCaller is the error of the caller's reader, writers and callback,
// or of reading the output; it is nil if none of them failed.
func (p *Process) complete(r *Result, stop *timeout.Error, fromCaller error) {
	err, reaped := p.tree.State()
	if reaped {
		r.State = p.inner.ProcessState
		p.cmd.ProcessState = r.State
	}
	switch {
	case r.Reason == OutOfMemory:
		s := timeout.FromContext(p.running).Snapshot()
		figures := &timeout.Error{Figures: s.Figures}
		p.err = &commandStop{reason: r.Reason, message: r.Message, err: errors.Join(err, fromCaller), result: r, figures: figures}
	case stopOf(stop) != nil:
		p.err = &commandStop{reason: r.Reason, message: r.Message, err: errors.Join(err, fromCaller), result: r, figures: stop}
	case stop != nil:
		if stop.Err = err; fromCaller != nil {
			stop.Err = errors.Join(err, fromCaller)
		}
		stop.Result = r
		stop.Stack = withStacks(stop.Stack, r)
		p.err = stop
	case !reaped:
		p.err = errors.Join(errors.New("procgroup: the command has ended, but its exit status is unknown"), fromCaller)
	case err != nil && fromCaller != nil:
		p.err = errors.Join(err, fromCaller) // the failed writer may be why the command failed
	case err != nil:
		p.err = err
	default:
		p.err = fromCaller
	}
	if fromCaller == nil || stop != nil && stopOf(stop) == nil { // the exit code of a timeout.Error ignores wrapped errors
		r.ExitCode = timeout.ExitCode(p.err)
		return
	}
	final := p.err
	r.ExitCode = within(func() int { return timeout.ExitCode(final) }, exitCode(r.Reason, err))
}

// exitCode returns the exit code of a result whose error includes an error of the caller's code, without calling the
// methods of that error. err is the error of the command itself.
func exitCode(reason Reason, err error) int {
	if reason == Exited {
		return max(timeout.ExitCode(err), 1)
	}
	return reason.exitCode()
}

// within calls f on another goroutine and returns its value. It returns otherwise if f panics, ends its goroutine, or
// does not return within beginTime. f calls methods of the caller's errors, which may block.
func within[T any](f func() T, otherwise T) T {
	value := make(chan T, 1)
	go capture.Guard(func() { value <- f() }, func(error) { value <- otherwise })
	moment := time.NewTimer(beginTime)
	defer moment.Stop()
	select {
	case v := <-value:
		return v
	case <-moment.C:
		return otherwise
	}
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

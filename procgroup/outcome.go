package procgroup

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func reason(stop *timeout.Error) Reason {
	switch {
	case stop == nil:
		return Exited
	case stop.Kind == timeout.KindIdle:
		return IdleTimeout
	case stop.Kind == timeout.KindTotal:
		return TotalTimeout
	case stopOf(stop) != nil:
		return stopOf(stop).reason
	}
	return Aborted
}

// message implements SPEC 6.8: the wording is the same for every limit, whether the command's own or an
// enclosing one.
func (p *Process) message(stop *timeout.Error) string {
	switch reason(stop) {
	case IdleTimeout:
		signs := "output."
		if p.activity.wanted() {
			signs = "output or work."
		}
		return stop.Tool + " process timed out after " + millis(stop.Limit) + "ms without " + signs
	case TotalTimeout:
		limit := stop.Limit
		if stop.Cause != nil && limit > 0 { // the rest of the caller's deadline: SPEC 3.3
			limit = max(limit.Round(time.Millisecond), time.Millisecond)
		}
		return stop.Tool + " process timed out after " + millis(limit) + "ms."
	case Aborted:
		return stop.Tool + " process was aborted."
	case WaitingForInput:
		return stop.Tool + " " + p.input.now().String()
	case StoppedByTerminal:
		return stop.Tool + " was stopped by the terminal."
	case TooMuchOutput:
		return fmt.Sprintf("%s wrote more than %d bytes.", stop.Tool, p.capture.Limit)
	}
	return ""
}

// millis formats d in milliseconds, as the shortest decimal number. A float64 is exact to the
// nanosecond up to 104 days.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// ranOut is the message of a command that ran out of memory, at its own limit or at an enclosing one, which may be that
// of the machine.
func (p *Process) ranOut(atLimit bool) string {
	name := timeout.FromContext(p.running).Snapshot().Tool
	if atLimit && p.inForce.Memory > 0 {
		return fmt.Sprintf("%s ran out of memory (%s).", name, byteCount(p.inForce.Memory))
	}
	return name + " ran out of memory."
}

// complete sets the rest of the result, and the error. fromCaller is the error of the caller's reader
// and writers.
func (p *Process) complete(r *Result, stop *timeout.Error, fromCaller error) {
	err, reaped := p.tree.State()
	if reaped {
		r.State = p.inner.ProcessState
		p.cmd.ProcessState = r.State
	}
	switch {
	case r.Reason == OutOfMemory:
		s := timeout.FromContext(p.running).Snapshot()
		figures := &timeout.Error{Limits: s.Limits, Elapsed: s.Elapsed, LongestGap: s.LongestGap, Beats: s.Beats, Detail: s.Detail}
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
	if fromCaller == nil || stop != nil && stopOf(stop) == nil { // a timeout.Error does not look at the errors in it
		r.ExitCode = timeout.ExitCode(p.err)
		return
	}
	final := p.err
	r.ExitCode = beside(func() int { return timeout.ExitCode(final) }, exitCode(r.Reason, err))
}

// exitCode returns the exit code without the errors of the caller's reader and writers. err is that of the command.
func exitCode(reason Reason, err error) int {
	if reason == Exited {
		return max(timeout.ExitCode(err), 1)
	}
	return reason.exitCode()
}

// beside calls f on another goroutine and returns its value, or otherwise if f does not return in a moment: f calls
// methods of the caller's errors, which may block.
func beside[T any](f func() T, otherwise T) T {
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

// left returns the attributes of the warning about an incomplete end, if there is anything to warn of. What
// Orphans keep is what the caller wanted.
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

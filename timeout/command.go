package timeout

import (
	"context"
	"log/slog"
	"slices"

	"github.com/tooldeadline/tooldeadline/internal/command"
)

// This file is for executions that run a command (SPEC 6.24). Such an execution is stopping from
// the end of its function until the command has been concluded and the hooks have been called.

func init() { command.Check, command.Run = checkCommand, runCommand }

// A commandRun is what only the execution of a command has.
type commandRun struct {
	*command.Command

	// Under the cell's lock.
	concluded bool  // the fields below are set
	final     error // the outcome of the call
	returned  bool  // final is the outcome of the command, and not of a stop
	told      bool
}

func checkCommand(opts any) error {
	var given settings
	for _, o := range opts.([]Option) {
		if o != nil {
			o.apply(&given)
		}
	}
	switch {
	case given.limited:
		return &ConfigError{Key: "WithOptions", Value: "a timeout.Config", Accepted: "the limits of a command as procgroup.Limits"}
	case given.recovers:
		return &ConfigError{Key: "WithOptions", Value: "timeout.WithRecover", Accepted: "options for a command, which has no function that could panic"}
	}
	return nil
}

func runCommand(ctx context.Context, c *command.Command, wait func(context.Context) error, opts any) error {
	_, err := run(ctx, wait, append(slices.Clip(opts.([]Option)), optionFunc(func(s *settings) {
		if s.tool == "" {
			s.tool = c.Name
		}
		s.limits, s.limited = Config{Total: c.Total, Idle: c.Idle, Grace: c.Grace, Reserve: c.Reserve}, true
		s.command, s.operation = &commandRun{Command: c}, OperationCommand
	})))
	return err
}

// enclosingTimeout returns the timeout of an enclosing execution that has ended the context of
// a command's caller with err and cause, or nil. To a function that is an abort, but a command
// has timed out. A timeout that code took from elsewhere as its reason to cancel is an abort.
func (e *Execution) enclosingTimeout(err, cause error) *Error {
	stop, ok := cause.(*Error)
	if e.command == nil || !ok || !stop.Timeout() {
		return nil
	}
	if err == context.DeadlineExceeded {
		return stop
	}
	// Where contexts are merged, the Err is context.Canceled, and the Cause is passed on.
	for outer := e.enclosing(); outer != nil; outer = outer.enclosing() {
		outer.cell.Lock()
		same := outer.stop == stop
		outer.cell.Unlock()
		if same {
			return stop
		}
	}
	return nil
}

// over reports whether the function has returned and, if it was for a command, the command's end
// has been reported. The cell is locked.
func (e *Execution) over() bool {
	return e.returned && (e.command == nil || e.command.told)
}

// outcome is the error of an execution that has been decided, as far as it is known, and whether
// it is what the function returned.
func (e *Execution) outcome() (err error, returned bool) {
	if c := e.command; c != nil {
		e.cell.Lock()
		defer e.cell.Unlock()
		if c.concluded {
			return c.final, c.returned
		}
		if e.stop == nil {
			return nil, false // until the exit code has been read
		}
	}
	if e.stop != nil {
		return e.stop, false
	}
	return e.err, e.normal
}

// concludeCommand ends the command, and reports what the call returns to the hooks and the log: out, if
// the execution was stopped, unless the command could not be started in the first place.
func (e *Execution) concludeCommand(out *Error) error {
	var s Snapshot // before anything is killed, which is no part of what the figures are about
	outcome := e.err
	if out != nil {
		s, outcome = e.snapshotOf(out, StateEnded), out
	} else {
		s = e.snapshot(nil)
	}
	left, leftovers, final := e.command.Conclude(outcome)
	stopped := out != nil && final == error(out)
	_, ownStop := final.(command.Stop)
	s.State, s.Err, s.Leftovers, s.Returned = StateEnded, final, leftovers, e.normal && !stopped && !ownStop
	e.cell.Lock()
	e.command.concluded, e.command.final, e.command.returned = true, final, s.Returned
	e.cell.Unlock()
	mine := false
	switch {
	case stopped:
		s.Stack = out.Stack // Conclude may have completed it
		mine = e.logStop(out)
	case ownStop:
		s.Stack = nil
		mine = e.postLog(slog.LevelWarn, "command was stopped", errorAttr(final))
	default:
		s.Stack = nil
	}
	if left != nil {
		mine = e.postLog(slog.LevelWarn, "command left something behind", append(left, errorAttr(final))...) || mine
	}
	mine = e.logObserved(&s) || mine
	mine = e.postHook(hookFinished, &s) || mine
	e.deliver(mine, false)
	return final
}

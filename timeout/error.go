package timeout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// A Kind is the reason why an execution was stopped. A Kind is an error, so that [errors.Is] matches an [*Error] with
// its Kind; [errors.As] does not find a Kind in an Error.
type Kind int

const (
	// ErrIdle means that no heartbeat came for as long as the idle limit. An error that matches ErrIdle also matches
	// [context.DeadlineExceeded].
	ErrIdle Kind = iota + 1
	// ErrTotal means that the elapsed time reached the total limit, the deadline of the caller's context or
	// TOOL_DEADLINE, or that less time was left than [Need] asks for. An error that matches ErrTotal also matches
	// [context.DeadlineExceeded].
	ErrTotal
	// ErrAborted means that the caller or [Execution.Abort] stopped the execution. An error that matches ErrAborted
	// also matches [context.Canceled].
	ErrAborted
)

// Error returns "idle", "total" or "aborted", and for an invalid Kind its number, as in "Kind(7)".
func (k Kind) Error() string { return word("Kind", int(k), "", "idle", "total", "aborted") }

// ErrGoexit means that the function, or a hook Context or Started before it, called [runtime.Goexit] instead of
// returning, as testing's FailNow does. The error that [Run] returns wraps ErrGoexit and also names the tool, so use
// [errors.Is].
var ErrGoexit = errors.New("timeout: the function called runtime.Goexit")

// A goexitError is an ErrGoexit with the name of the tool.
type goexitError struct{ Tool string }

func (e *goexitError) Error() string { return ErrGoexit.Error() }

func (e *goexitError) Unwrap() error { return ErrGoexit }

// Format adds the tool to the text if the verb is %+v.
func (e *goexitError) Format(s fmt.State, verb rune) {
	type raw goexitError
	format(s, verb, e, (*raw)(e), nil, aboutTool(e.Tool))
}

// Figures identify an execution and describe its course: in an [Error] up to the stop of the execution, and in a
// [Snapshot] up to the time of the Snapshot or the function's return, whichever was first.
type Figures struct {
	Tool      string    // from WithName; for a command without it, the name of the command
	Operation Operation // see WithOperation; OperationCommand for a command
	// Limits are the enforced limits: normalised, with Total cut to the deadline of the caller or of TOOL_DEADLINE,
	// and with the default Grace filled in. They are zero if the function was never started.
	Limits Config

	Elapsed time.Duration // since the start
	// SinceBeat is the time since the last heartbeat. The start, the beginning and the end of a hold, and the end of a
	// stall count as heartbeats here. In a Snapshot, so do the heartbeats of an abandoned function.
	SinceBeat  time.Duration
	LongestGap time.Duration // the longest time without a heartbeat up to Elapsed, without holds and stalls
	Beats      uint64        // the number of heartbeats; see heartbeat.Monitor.Count
	Detail     any           // the newest detail of heartbeat.BeatWith, or nil
	// Stalls is the number of times that the idle check found the process to have been unable to run.
	Stalls int
	// Stack holds the stacks of the function's goroutine and of the goroutines that it had started, taken when the
	// idle limit fired or the function was abandoned. The traces have the form of runtime.Stack, are separated by
	// empty lines, and begin with the trace of the function. They take 64 KiB at most. Taking stacks stops the world
	// and is rationed, so Stack may be nil in a process with thousands of goroutines, or when many limits fire one
	// after the other. For a command of package procgroup, Stack describes what its processes were doing, after a
	// total timeout too. [Execution.Snapshot] leaves Stack nil; [Execution.Stack] takes one.
	Stack []byte
}

// An Error is the outcome of an execution that was stopped, or not started because its time was over or too short.
// [Run] returns an *Error. After a timeout, the [context.Cause] of the function's context is another *Error, made
// when the limit fires, so that its Err is nil and its Abandoned is false.
//
// An Error wraps the function's error and the caller's cause, but only the Error itself shows whether a limit or the
// caller stopped the execution: [errors.Is] does not look for ErrIdle, ErrTotal, ErrAborted, context.Canceled or
// context.DeadlineExceeded in the two wrapped errors, because a function whose context is cancelled usually returns
// context.Canceled, whatever the reason. If an enclosing execution exceeds its idle limit, a nested function is
// aborted, and the Cause is the Error of the enclosing execution; a nested command of package procgroup times out
// instead. The total of an enclosing execution acts as a total of both.
type Error struct {
	Kind    Kind
	Figures // they cover the time up to the stop, without the grace
	// Limit is the enforced limit that fired: for a deadline, the time from the start until then. It is 0 for an
	// abort, and if the deadline had passed before the start. If the total of an enclosing execution fired, Limit is
	// the whole of that total, even if less was left at the start. If a limit of an enclosing execution stopped a
	// command, Limit is that limit.
	Limit time.Duration
	// Needed is the argument of [Need] if the execution was not started because less time was left; Limit is then the
	// time left. Otherwise Needed is 0.
	Needed time.Duration

	// Abandoned reports whether the function had not returned when the grace was over. The function's goroutine
	// lives on until the function returns.
	Abandoned bool
	// Unreported reports whether a hook or the log handler had not returned when Run did; see [Hooks]. Until that
	// hook or handler returns, the execution is in [AbandonedCount] and [Running].
	Unreported bool
	// Result is a *procgroup.Result if the execution was a command of package procgroup that was started, and nil
	// otherwise.
	Result any

	// Err is the error that the function returned after the stop, or a *PanicError if the function panicked under
	// [WithRecover]. Err is nil if the function returned nil, was abandoned or was not called.
	Err error
	// Cause is the Cause of the caller's context if the end of that context stopped the execution, or the argument
	// of [Execution.Abort]. After a deadline of the caller, Cause is the cause given to context.WithDeadlineCause or
	// context.WithTimeoutCause, and otherwise context.DeadlineExceeded. After TOOL_DEADLINE, Cause is an error that
	// names it. After any other total or an idle limit, Cause is nil, but if a client's budget set the limit of its
	// call, package toolcall sets Cause to an error that says so.
	Cause error
}

// Error returns a message with the limit, such as "Tool exceeded wall-clock limit of 1800s.", or with the cause of an
// abort. Format adds the rest. For a command that wrote nothing it is "No progress for 120s (idle timeout). make
// wrote nothing.", and for a client's request the message advises the author of the client. The limit is exact,
// except that the time left until a caller's deadline is rounded to a millisecond.
//
// The message includes at most 64 KiB of the text of a cause or a detail, with a count of the rest. If a method of
// that value does not return within half a second, the message says so instead; the wait is shorter while methods of
// other such values are stuck.
func (e *Error) Error() string {
	switch e.Kind {
	case ErrIdle:
		text := "No progress for " + seconds(e.Limit) + "s (idle timeout). "
		if status, ok := e.Detail.(pulse.Status); ok {
			return text + "Its command " + string(status)
		}
		if e.Operation == OperationCommand {
			return text + cmp.Or(e.Tool, "The command") + " wrote nothing." // a command has no heartbeat() (SPEC 6.29)
		}
		if e.Operation == OperationRequest { // the reader is the author of a client (SPEC 8.10)
			return text + "The server has sent neither an answer nor progress: raise the client's limit, or let progress renew it."
		}
		return text + e.subject() + " should call heartbeat() during long work."
	case ErrTotal:
		if e.Needed > 0 {
			return e.subject() + " needs " + seconds(e.Needed) + "s, and " + seconds(rounded(e.Limit)) + "s is left."
		}
		limit := e.Limit
		if e.Cause != nil && limit > 0 {
			limit = rounded(limit) // the time left until the caller's deadline (SPEC 3.3)
		}
		text := e.subject() + " exceeded wall-clock limit of " + seconds(limit) + "s."
		if e.Operation == OperationRequest {
			text += " If the server may take longer, raise the client's limit."
		}
		return text
	case ErrAborted:
		if e.Cause == nil || e.Cause == context.Canceled {
			return e.subject() + " was aborted."
		}
		return e.subject() + " was aborted: " + textOf(e.Cause)
	}
	return "timeout: " + e.Kind.Error()
}

// subject returns the word for what was stopped. A command keeps the texts of a tool (SPEC 6.29).
func (e *Error) subject() string {
	switch e.Operation {
	case OperationHandler:
		return "Handler"
	case OperationRequest:
		return "Request"
	}
	return "Tool"
}

// rounded returns d rounded to the nearest millisecond, but at least 1 ms, so that no limit is shown as 0.
func rounded(d time.Duration) time.Duration {
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// seconds returns d in seconds, in the shortest exact decimal form (SPEC 3.3).
func seconds(d time.Duration) string {
	s := strconv.FormatInt(int64(d/time.Second), 10)
	if ns := int64(d % time.Second); ns > 0 {
		frac := strconv.FormatInt(1e9+ns, 10)[1:]
		s += "." + strings.TrimRight(frac, "0")
	}
	return s
}

// Timeout reports whether a limit or a deadline stopped the execution, rather than an abort.
func (e *Error) Timeout() bool { return e.Kind == ErrIdle || e.Kind == ErrTotal }

// Is reports whether target is the Kind of e, or the corresponding context error: context.DeadlineExceeded for a
// timeout, context.Canceled for an abort.
func (e *Error) Is(target error) bool {
	switch target {
	case context.Canceled:
		return e.Kind == ErrAborted
	case context.DeadlineExceeded:
		return e.Timeout()
	}
	return target == e.Kind
}

// Unwrap returns the function's error and the caller's cause, if there are any, each wrapped so that errors.Is finds
// no Kind and no context error in it. The fields Err and Cause hold the errors themselves.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Err != nil {
		all = append(all, &reason{e.Err})
	}
	if e.Cause != nil {
		all = append(all, &reason{e.Cause})
	}
	return all
}

// Format implements [fmt.Formatter]. %+v adds the tool, the figures, the newest detail, the texts of Err and Cause,
// the stack, and whether Abandoned or Unreported is set. Measured times are rounded as in [Error.LogValue].
func (e *Error) Format(s fmt.State, verb rune) {
	type raw Error
	format(s, verb, e, (*raw)(e), e.Stack, e.notes)
}

func (e *Error) notes() []note {
	stalls, abandoned, unreported := "", "", ""
	if e.Unreported {
		unreported = "a hook or the log handler has not returned"
	}
	if e.Stalls > 0 {
		stalls = strconv.Itoa(e.Stalls)
	}
	if e.Abandoned {
		abandoned = "abandoned"
	}
	return []note{
		{"tool ", texts.Name(e.Tool)},
		{"elapsed ", human.Duration(e.Elapsed).String()},
		{"since beat ", human.Duration(e.SinceBeat).String()},
		{"longest gap ", human.Duration(e.LongestGap).String()},
		{"beats ", strconv.FormatUint(e.Beats, 10)},
		{"stalls ", stalls},
		{"", unreported},
		{"last: ", textOf(e.Detail)},
		{"", abandoned},
		{"returned: ", textOf(e.Err)},
		{"cause: ", textOf(e.Cause)},
	}
}

// A reason wraps an error of the function or of the caller, so that errors.Is and errors.As do not take it for the
// outcome of the execution.
type reason struct{ err error }

func (o *reason) Error() string { return textOf(o.err) }

func (o *reason) Is(target error) bool {
	switch target {
	case ErrIdle, ErrTotal, ErrAborted, context.Canceled, context.DeadlineExceeded:
		return false
	}
	return errors.Is(o.err, target)
}

func (o *reason) As(target any) bool {
	_, kind := target.(*Kind)
	return !kind && errors.As(o.err, target)
}

// A PanicError describes a panic of the function. [Run] returns it under [WithRecover], after a stop as the Err of
// the [*Error]. Otherwise errors.As finds it in the value that Run panics with, unless the function panicked with an
// error that is not a runtime.Error. A panic that passes through nested executions has the Stack and the Tool of the
// innermost.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the panic, in the form of debug.Stack
	Tool  string // the name given to WithName
}

// Error returns "panic: " and the text of Value, without the stack, within the bounds that [Error.Error] describes.
func (e *PanicError) Error() string { return "panic: " + textOf(e.Value) }

// Unwrap returns Value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Format implements [fmt.Formatter]. %+v adds the tool and the stack to the text.
func (e *PanicError) Format(s fmt.State, verb rune) {
	type raw PanicError
	format(s, verb, e, (*raw)(e), e.Stack, aboutTool(e.Tool))
}

// textOf returns the text of a detail, an error or the value of a panic: a string or an error's message unchanged, a
// number in few digits, and anything else by its String method if it has one, as package progress's Update does. The
// text of nil is "". A method of v is the caller's code, and may be given up (SPEC 3.25).
func textOf(v any) string {
	switch v := v.(type) {
	case *Error:
		if v != nil {
			return v.Error()
		}
	case *PanicError:
		if v != nil {
			return v.Error()
		}
	}
	return texts.Part(v)
}

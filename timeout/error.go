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

// A Kind says why an execution was stopped. A Kind is an error, so that [errors.Is] finds the Kind of an [*Error];
// [errors.As] does not find it.
type Kind int

const (
	// ErrIdle: no heartbeat came for as long as the idle limit. An error that matches it also matches
	// [context.DeadlineExceeded].
	ErrIdle Kind = iota + 1
	// ErrTotal: the elapsed time reached the total limit, or the deadline of the caller's context
	// came first. An error that matches it also matches [context.DeadlineExceeded].
	ErrTotal
	// ErrAborted: the caller or [Execution.Abort] stopped the execution. An error that matches it also matches
	// [context.Canceled].
	ErrAborted
)

// Error returns "idle", "total" or "aborted".
func (k Kind) Error() string {
	switch k {
	case ErrIdle:
		return "idle"
	case ErrTotal:
		return "total"
	case ErrAborted:
		return "aborted"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// ErrGoexit reports that the function called [runtime.Goexit] instead of returning, as testing's
// FailNow does. The error that [Run] returns wraps it and also names the tool, so use [errors.Is].
var ErrGoexit = errors.New("timeout: the function called runtime.Goexit")

// A goexitError is an ErrGoexit with the name of the tool.
type goexitError struct{ Tool string }

func (e *goexitError) Error() string { return ErrGoexit.Error() }

func (e *goexitError) Unwrap() error { return ErrGoexit }

// Format adds the tool to the text where the verb is %+v.
func (e *goexitError) Format(s fmt.State, verb rune) {
	type raw goexitError
	format(s, verb, e, (*raw)(e), nil, aboutTool(e.Tool))
}

// Figures name an execution and describe its course: in an [Error] up to the stop of the execution, and in a
// [Snapshot] up to the moment at which the Snapshot was taken, or to the function's return.
type Figures struct {
	Tool      string    // from WithName
	Operation Operation // from WithOperation; an error of a command says what a command can do
	// Limits are the limits of the execution as enforced: normalised, Total cut to the caller's
	// deadline, Grace filled in. They are zero if the function was never started.
	Limits Config

	Elapsed    time.Duration // since the start
	SinceBeat  time.Duration // since the last heartbeat; in a Snapshot, an abandoned function's heartbeats count, too
	LongestGap time.Duration // the longest time without a heartbeat, including the last, without holds and stalls
	Beats      uint64        // the number of heartbeats; see heartbeat.Monitor.Count
	Detail     any           // the newest detail, see heartbeat.BeatWith, or nil
	// Stalls is the number of times that the process itself was found to have been stopped.
	Stalls int
	// Stack holds the stacks of the function's goroutine and of those that it had started, taken
	// when the idle limit fired or the function was abandoned. The traces have the form of
	// runtime.Stack, are separated by empty lines, and begin with the trace of the function. They
	// take 64 KiB at most. Stack may be nil in a process with thousands of goroutines, or when many
	// limits fire one after the other, because taking stacks stops the world and is rationed. For a
	// command of package procgroup, Stack shows what its processes were doing, after a total
	// timeout too. [Execution.Snapshot] leaves it out; [Execution.Stack] takes one.
	Stack []byte
}

// An Error is the outcome of an execution that was stopped. [Run] returns an *Error, and the
// [context.Cause] of the function's context is another *Error. The Cause is made when the limit fires,
// so its Err is nil and its Abandoned is false.
//
// An Error wraps the function's error and the caller's cause, but only the Error itself says
// whether a limit or the caller stopped the execution: [errors.Is] does not look for ErrIdle,
// ErrTotal, ErrAborted, context.Canceled or context.DeadlineExceeded in the two wrapped errors,
// because a function whose context is cancelled usually returns context.Canceled, whatever the
// reason. If an enclosing execution times out, a nested function is aborted, and the Cause is the
// Error of the enclosing execution. A nested command of package procgroup times out instead.
type Error struct {
	Kind    Kind
	Figures // up to the stop, without the grace
	// Limit is the limit that fired, as enforced. It is 0 for an abort. If the total of an
	// enclosing execution fired, Limit is the whole of that total, even if less was left at the
	// start. If a limit of an enclosing execution stopped a command, Limit is that limit.
	Limit time.Duration
	// Needed is the duration given to [Need], if less than that was left and the execution was not
	// started; Limit is then what was left. Otherwise Needed is 0.
	Needed time.Duration

	// Abandoned reports whether the function had not returned when the grace was over. Its
	// goroutine lives on until it returns.
	Abandoned bool
	// Unreported reports whether a hook or the log handler had not returned when Run did; see [Hooks].
	// Until it returns, the execution is in [AbandonedCount] and [Running].
	Unreported bool
	// Result is a *procgroup.Result if the execution was a command of package procgroup, and nil
	// otherwise.
	Result any

	Err error // the error that the function returned after the stop, if any
	// Cause is the Cause of the caller's context if the end of that context stopped the execution:
	// after a deadline of the caller, what was given to context.WithDeadlineCause or
	// context.WithTimeoutCause, and context.DeadlineExceeded if nothing was. Where a client's budget has set the
	// limit of its call, package toolcall says so here.
	Cause error
}

// Error returns a message with the limit, such as "Tool exceeded wall-clock limit of 1800s.";
// Format adds the rest. For a command that wrote nothing it is "No progress for 120s (idle timeout).
// make wrote nothing.", and for a client's request the advice is for the author of the client. The limit is
// exact, except that what was left of a caller's deadline is rounded to a millisecond.
//
// Of an error or a detail of another module, the message shows at most 64 KiB, with a count of the rest, and
// nothing if its method does not return within a second.
func (e *Error) Error() string {
	switch e.Kind {
	case ErrIdle:
		text := "No progress for " + seconds(e.Limit) + "s (idle timeout). "
		if status, ok := e.Detail.(pulse.Status); ok {
			return text + "Its command " + string(status)
		}
		if e.Operation == OperationCommand {
			return text + cmp.Or(e.Tool, "The command") + " wrote nothing." // it has no heartbeat() to call (SPEC 6.29)
		}
		if e.Operation == OperationRequest { // the reader is the author of a client (SPEC 8.10)
			return text + "The server has sent neither an answer nor progress: raise the client's limit, or let progress renew it."
		}
		return text + "Tool should call heartbeat() during long work."
	case ErrTotal:
		if e.Needed > 0 {
			return "Tool needs " + seconds(e.Needed) + "s, and " + seconds(rounded(e.Limit)) + "s is left."
		}
		limit := e.Limit
		if e.Cause != nil && limit > 0 {
			limit = rounded(limit) // the caller's deadline (SPEC 3.3)
		}
		if e.Operation == OperationRequest {
			return "Request exceeded wall-clock limit of " + seconds(limit) + "s. If the server may take longer, raise the client's limit."
		}
		return "Tool exceeded wall-clock limit of " + seconds(limit) + "s."
	case ErrAborted:
		if e.Cause == nil || e.Cause == context.Canceled {
			return "Tool was aborted."
		}
		return "Tool was aborted: " + textOf(e.Cause)
	}
	return "timeout: " + e.Kind.Error()
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

// Timeout reports whether a limit stopped the execution, rather than the caller.
func (e *Error) Timeout() bool { return e.Kind == ErrIdle || e.Kind == ErrTotal }

// Is reports whether target is the Kind of e, or the context error that goes with it: context.DeadlineExceeded for a
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

// Unwrap returns the function's error and the caller's cause, if there are any, wrapped so that
// they match none of the errors that say how the execution ended. Err and Cause have them
// unwrapped.
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

// Format implements [fmt.Formatter]. %+v adds the other fields, among them the tool and the newest
// detail, and the stack. Measured times are rounded as in LogValue.
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
		{"tool ", e.Tool},
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

// A reason wraps an error of the function or of the caller, so that neither errors.Is nor errors.As takes it for the
// way in which the execution ended.
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

// A PanicError holds a panic of the function. [Run] returns it under [WithRecover]. Otherwise
// errors.As finds it in the value that Run panics with, unless the function panicked with an error.
// A panic that passes through nested executions has the Stack and the Tool of the innermost.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the panic, in the form of debug.Stack
	Tool  string // the name given to WithName
}

// Error returns the value, without the stack, in the bounds that [Error.Error] names.
func (e *PanicError) Error() string { return "panic: " + textOf(e.Value) }

// Unwrap returns the value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Format implements [fmt.Formatter]. %+v adds the tool and the stack to the text.
func (e *PanicError) Format(s fmt.State, verb rune) {
	type raw PanicError
	format(s, verb, e, (*raw)(e), e.Stack, aboutTool(e.Tool))
}

// textOf returns the text of a detail, an error or the value of a panic: a string or an error as it is,
// a number in few digits, and anything else by its String method if it has one, as package
// progress's Update does. That of nil is "". The methods are the caller's code (SPEC 3.25).
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return human.Number(v)
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

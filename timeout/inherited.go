package timeout

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A program may find a deadline in the variable TOOL_DEADLINE of its environment (SPEC 18.1). It bounds an execution
// as a caller's deadline does. A nested execution gets it as the deadline of the enclosing execution or, if its
// context is detached from that, from the environment. No context of the caller's ends at this deadline, so no
// outcome waits for one.
//
// The deadline is ignored where a test sets the time: on a clock given by WithClock, and in a bubble of
// testing/synctest, whose time is before the start of the process. Otherwise a test's outcome would depend on the
// environment.

const envDeadline = "TOOL_DEADLINE"

// beginning is the earliest start of an execution that TOOL_DEADLINE may bound.
var beginning = epoch

// An inheritance holds the value of TOOL_DEADLINE.
type inheritance struct {
	at     time.Time // on the monotonic clock of this process
	text   string
	cause  error       // the Cause of the Error of an execution that this deadline has stopped
	err    error       // the reason why the value is ignored, or nil
	logged atomic.Bool // whether an execution has logged the deadline or err
}

// inherited returns the value of TOOL_DEADLINE, which its first call reads, or nil if the variable is not set.
var inherited = sync.OnceValue(func() *inheritance {
	text, ok := os.LookupEnv(envDeadline)
	if !ok {
		return nil
	}
	in := &inheritance{text: text, cause: fmt.Errorf("%s=%s in the environment: %w", envDeadline, text, context.DeadlineExceeded)}
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)) // RFC 3339 allows t and z, too
	if err != nil {
		in.err = &ConfigError{Key: envDeadline, Value: text, Accepted: "an instant as in RFC 3339, such as 2006-01-02T15:04:05.000Z"}
		return in
	}
	in.at = epoch.Add(at.Sub(epoch)) // measured from epoch, so that a step of the system's clock moves no limit
	return in
})

// Inherited returns the deadline in the environment variable TOOL_DEADLINE, or the zero Time if it is not set. If
// the value cannot be read, Inherited returns the zero Time and an error that wraps a [*ConfigError], and executions
// ignore the value. The variable is read once, so a later os.Setenv changes nothing. A program can report its
// deadline at its start; executions log the deadline only when it first bounds one of them.
func Inherited() (deadline time.Time, err error) {
	if in := inherited(); in != nil {
		return in.at, in.err
	}
	return time.Time{}, nil
}

// WithoutInherited makes the execution and all nested executions ignore the deadline in TOOL_DEADLINE.
// It is for work that must go on after that deadline.
func WithoutInherited() Setting { return optionFunc(func(s *settings) { s.uninherited = true }) }

// inheritedLeft returns the time from the start until TOOL_DEADLINE. ok is false if TOOL_DEADLINE does not bound the
// execution.
func (e *Execution) inheritedLeft() (left time.Duration, ok bool) {
	in := inherited()
	if in == nil || e.cell.Clock() != nil || e.cell.Start().Before(beginning) {
		return 0, false
	}
	for x := e; x != nil; x = x.encloser() {
		if x.uninherited {
			return 0, false
		}
	}
	if in.err != nil {
		e.logInherited(in, slog.LevelWarn, "the deadline of the environment is ignored", slog.Any("error", in.err))
		return 0, false
	}
	return in.at.Sub(e.cell.Start()), true
}

// logInherited logs msg about TOOL_DEADLINE, once in a process: to the logger of the first execution that the
// deadline concerns and that has a logger.
func (e *Execution) logInherited(in *inheritance, level slog.Level, msg string, attrs ...slog.Attr) {
	if e.log != nil && !in.logged.Swap(true) {
		e.postLog(level, msg, attrs...)
	}
}

// inherit records that TOOL_DEADLINE is the enforced total, and logs left, the time until TOOL_DEADLINE.
func (e *Execution) inherit(left time.Duration) {
	e.inherits = true
	in := inherited()
	e.logInherited(in, slog.LevelInfo, "the total is cut to the deadline of the environment",
		slog.String(envDeadline, in.text), slog.Duration("left", left.Round(time.Millisecond)))
}

// remainingInherited cuts left, the result of Remaining outside an execution, to the time until TOOL_DEADLINE.
func remainingInherited(left time.Duration, ok bool) (time.Duration, bool) {
	in, now := inherited(), time.Now()
	if in == nil || in.err != nil || now.Before(beginning) {
		return left, ok
	}
	if theirs := in.at.Sub(now); !ok || theirs < left {
		return theirs, true
	}
	return left, ok
}

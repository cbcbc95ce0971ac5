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

// This file is about the deadline that a program has in its environment (SPEC 18.1). It bounds an execution as a
// caller's deadline does; one within another has it as that of the other, unless it was detached. Nobody cancels a context for it, so
// there is nobody to wait for when it has come.
//
// Where time is the hand of a test it does not count: on a clock that was given, and in a bubble of testing/synctest,
// whose time is before the process began. A test would otherwise have another outcome below a limit than without.

const envDeadline = "TOOL_DEADLINE"

// beginning is the instant before which no deadline of the environment counts.
var beginning = epoch

// An inheritance is what the variable said when it was read.
type inheritance struct {
	at     time.Time // on the monotonic clock of this process
	text   string
	cause  error       // the Cause of an execution that this deadline has stopped
	err    error       // why the value could not be read, and is ignored
	logged atomic.Bool // once in a process
}

// inherited is nil where there is no variable. It is read once, as the others are.
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
	in.at = epoch.Add(at.Sub(epoch)) // a step of the system's clock moves no limit
	return in
})

// Inherited returns the deadline that this program has in its environment, in TOOL_DEADLINE, and the zero Time if there is
// none. If the value cannot be read, no execution counts it, and the error wraps a [*ConfigError]. It is for a program
// that says at its start what bounds it; executions log that only once one of them is concerned.
func Inherited() (deadline time.Time, err error) {
	if in := inherited(); in != nil {
		return in.at, in.err
	}
	return time.Time{}, nil
}

// WithoutInherited leaves out the deadline of the environment, TOOL_DEADLINE, for the execution and all within it.
// It is for work that has to outlive what the program was started for.
func WithoutInherited() Setting { return optionFunc(func(s *settings) { s.uninherited = true }) }

// inheritedLeft returns the time until the deadline of the environment, and false if it does not bound the
// execution itself.
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

// logInherited logs about the deadline of the environment, once in a process: to the logger of the first execution
// that it concerns and that has one.
func (e *Execution) logInherited(in *inheritance, level slog.Level, msg string, attrs ...slog.Attr) {
	if e.log != nil && !in.logged.Swap(true) {
		e.postLog(level, msg, attrs...)
	}
}

// inherit makes the deadline of the environment the total.
func (e *Execution) inherit(left time.Duration) {
	e.inherits = true
	in := inherited()
	e.logInherited(in, slog.LevelInfo, "the total is cut to the deadline of the environment",
		slog.String(envDeadline, in.text), slog.Duration("left", left.Round(time.Millisecond)))
}

// remainingInherited cuts what is left for a context without an execution.
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

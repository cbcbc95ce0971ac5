package toolcall

import (
	"context"
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ErrResult means that the tool has returned a result whose isError is true. An adapter returns ErrResult from the
// function that it passes to [Do], so that hooks and logs record that the tool has failed. The client receives the
// result unchanged.
var ErrResult = errors.New("the tool's result is an error")

// Text returns the text of a tool's result that reports err to the model: the message of err; for a tool that was
// stopped, the client's budget if that was the limit, advice if a limit ended a wait for a person, and the last
// reported progress, such as "last: file 37 of 100"; and the partial output, unless partial is empty or white space.
//
// If err is, or wraps, the error of a command of package procgroup that was stopped, Text uses the message of the
// command, such as "TLC process timed out after 120000ms.", in place of the message of the execution. For such a
// command, if partial is empty or white space, Text adds the command's exit code and the output that was kept.
//
// If a method of err does not return within 1 s, the text has only the message of err and the partial output.
func Text(err error, partial string) string {
	text, rest := words(err)
	if strings.TrimSpace(partial) != "" {
		return text + "\n\nPartial output:\n" + partial
	}
	if rest != "" {
		text += "\n" + rest
	}
	return text
}

// Message returns the text that [Text] returns, without any output or exit code of a command, for a result that already
// contains the output.
func Message(err error) string {
	text, _ := words(err)
	return text
}

// words returns the text for err, and, for a command that was stopped, the rest of the command's text. It does not wait
// longer than 1 s for the methods of err, which are the tool's code; then it returns only the message of err.
func words(err error) (text, rest string) {
	both := new(struct{ text, rest string })
	if !texts.Ask(func() { both.text, both.rest = wordsOf(err) }) {
		return textOf(err), ""
	}
	return both.text, both.rest
}

func textOf(err error) string {
	switch err := err.(type) {
	case *timeout.Error:
		return err.Error()
	case *timeout.PanicError:
		return err.Error()
	}
	return texts.Part(err)
}

func wordsOf(err error) (text, rest string) {
	text = textOf(err)
	if command, stop := commandOf(err); stop != nil {
		var message string
		message, rest, _ = strings.Cut(command.Text(), "\n")
		switch err.(type) {
		case *timeout.Error, commandStop:
			text = message
		default:
			text = strings.Replace(text, stop.Error(), message, 1) // keeps the text with which the tool wraps it
		}
	}
	var e *timeout.Error
	if errors.As(err, &e) {
		if b, ok := e.Cause.(*budgetError); ok {
			text += "\nThe limit is from " + b.Error() + "."
		}
	}
	if advice := adviceOf(err); advice != "" && !strings.Contains(text, advice) {
		text += "\n" + advice
	}
	if last := lastOf(err); last != "" {
		text += "\nlast: " + last
	}
	return text, rest
}

// A commandResult is a *procgroup.Result, whose text begins with a line that is the message. This package does not
// import procgroup, so that a server without commands does not link it.
type commandResult interface{ Text() string }

// A commandStop is the error of a command that was stopped because of its behaviour, such as too much output, and not
// by a limit.
type commandStop interface {
	error
	commandResult
	ExitCode() int
	CommandStop() (reason string)
	Figures() *timeout.Error // the limits and times of the command's execution; may be nil
}

// commandOf returns the result of a stopped command and the error of the stop, as found in err, or nil and nil. It
// ignores a command that was stopped for another reason than the tool itself: the tool may return the error of a
// command that had been stopped earlier.
func commandOf(err error) (commandResult, error) {
	var tool *timeout.Error
	var find func(error) (commandResult, error)
	find = func(err error) (commandResult, error) {
		switch e := err.(type) {
		case nil:
			return nil, nil
		case *timeout.Error:
			if command, ok := e.Result.(commandResult); ok {
				if tool != nil && (tool.Kind != e.Kind || tool.Limit != e.Limit) {
					return nil, nil
				}
				return command, e
			}
			if tool == nil {
				tool = e
			}
			return find(e.Err) // e.Unwrap would return it in a wrapper
		case commandStop:
			if tool != nil {
				return nil, nil
			}
			return e, e
		case interface{ Unwrap() error }:
			return find(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				if command, stop := find(err); stop != nil {
					return command, stop
				}
			}
		}
		return nil, nil
	}
	return find(err)
}

// lastOf returns the newest heartbeat detail of the execution that err reports, as text. It returns "" if the detail is
// neither a string nor a value with a text, because other values may be private to the tool.
func lastOf(err error) string {
	var d *withDetail
	if errors.As(err, &d) {
		return progress.UpdateOf(d.detail).String()
	}
	var e *timeout.Error
	if !errors.As(err, &e) {
		return ""
	}
	return progress.UpdateOf(e.Detail).String()
}

// detailed adds the newest heartbeat detail of the call to err, if err reports the stop of an execution within the call
// that has no detail. A tool may have reported its progress before it began that execution (SPEC 7.7).
func detailed(ctx context.Context, err error) error {
	var e *timeout.Error
	if !errors.As(err, &e) || e.Detail != nil || ctx.Err() != nil || ownStopOf(err) != nil {
		return err
	}
	detail := heartbeat.FromContext(ctx).Detail()
	if detail == nil {
		return err
	}
	return &withDetail{err, detail}
}

// A withDetail is an error of a tool with the newest heartbeat detail of its call.
type withDetail struct {
	error
	detail any
}

func (e *withDetail) Unwrap() error { return e.error }

// ownStopOf returns the error of a command that was stopped because of its behaviour, or nil. It also returns nil if
// err wraps the error of the command in the error of an execution that was stopped itself.
func ownStopOf(err error) commandStop {
	var c commandStop
	var e *timeout.Error
	if !errors.As(err, &c) || c.Figures() == nil || errors.As(err, &e) && !errors.As(c, &e) {
		return nil
	}
	return c
}

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

// ErrResult tells [Do] that the tool has returned a result whose isError is true. An adapter returns
// it from the function that it gives to Do, so that hooks and logs know that the tool has failed. The
// client gets the result unchanged.
var ErrResult = errors.New("the tool's result is an error")

// Text returns what a result tells the model about err: its message; how far the tool had come, such
// as "last: file 37 of 100", if it was stopped and had reported; and the partial output, unless that
// is empty or white space.
//
// If err is, or contains, the error of a command of package procgroup that was stopped, the command's
// message is used, such as "TLC process timed out after 120000ms.", instead of the execution's. If
// there is then no partial output, Text adds the command's exit code and the output that was kept.
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

// Message is [Text] without any output, for a result that already has the output.
func Message(err error) string {
	text, _ := words(err)
	return text
}

// words returns the sentence for err, and the rest of the text of a command. The methods of err are the
// tool's code.
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
			text = strings.Replace(text, stop.Error(), message, 1) // the tool's own words around it stay
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

// A commandResult is a *procgroup.Result, whose text begins with the message. Procgroup itself is not
// imported: a server without commands needs none of it.
type commandResult interface{ Text() string }

// A commandStop is the error of a command that was stopped for what it did, and not by a limit.
type commandStop interface {
	error
	commandResult
	ExitCode() int
	CommandStop() (reason string)
	Figures() *timeout.Error // of its execution
}

// commandOf returns the result of a command whose stop err tells of, and that stop, or nil. A tool that was
// stopped itself may return the error of a command that had been stopped before, for another reason:
// that is not what has ended the tool.
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
			return find(e.Err) // Unwrap hides it
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

// lastOf returns the newest detail of the execution that err is about, as far as it is meant for
// others: anything may be a detail, and only what is a text, or has one, is no secret of the tool.
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

// detailed returns the error of a tool with the newest detail of its call, if err is about an execution
// within the call that has none of its own. A tool may have said how far it had come before it began
// that execution (SPEC 7.7).
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

// A withDetail is an error of a tool with the newest detail of its call.
type withDetail struct {
	error
	detail any
}

func (e *withDetail) Unwrap() error { return e.error }

// ownStopOf returns the error of a command that was stopped for what it did, or nil: also where that
// was part of an execution that was stopped itself, which is then what err is about.
func ownStopOf(err error) commandStop {
	var c commandStop
	var e *timeout.Error
	if !errors.As(err, &c) || c.Figures() == nil || errors.As(err, &e) && !errors.As(c, &e) {
		return nil
	}
	return c
}

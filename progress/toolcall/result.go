package toolcall

import (
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ErrResult is what an adapter returns from the function of [Do] for a tool that has returned a
// result whose isError is true, and no error: so hooks and logs know that it has failed. The
// client gets the result as it is.
var ErrResult = errors.New("the tool's result is an error")

// Text is what a result says about err to the model: its message; where the tool had got to,
// such as "last: file 37 of 100", if it was stopped and has reported; and, unless that is empty
// or white space, the partial output.
func Text(err error, partial string) string {
	text := err.Error()
	if last := lastOf(err); last != "" {
		text += "\nlast: " + last
	}
	if strings.TrimSpace(partial) != "" {
		text += "\n\nPartial output:\n" + partial
	}
	return text
}

// lastOf returns the newest detail of the execution that err is about, as far as it is meant for
// others: anything may be a detail, and only what is a text, or has one, is no secret of the tool.
func lastOf(err error) string {
	var e *timeout.Error
	if !errors.As(err, &e) || errors.Is(err, progress.ErrNoAnswer) { // that is about the wait
		return ""
	}
	return progress.UpdateOf(e.Detail).String()
}

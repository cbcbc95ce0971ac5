// Package stopped makes the texts and errors with which the host, and so the model, learns that a call was stopped: by a
// limit, by a person, or by the end of the server.
package stopped

import (
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// advice is what the error of an idle limit advises the author of a tool. The text instead replaces it, because the
// reader of an answer of the proxy cannot change the server.
const (
	advice  = "Tool should call heartbeat() during long work."
	instead = "The server has shown no sign of life."
)

// Text returns what an answer says about err; see [toolcall.Text].
func Text(err error, partial string) string { return replaced(err, toolcall.Text(err, partial)) }

// Message returns the message of err, for logs and for the server.
func Message(err error) string { return replaced(err, err.Error()) }

// replaced returns text, which has the message of err, with the advice replaced.
func replaced(err error, text string) string {
	if errors.Is(err, timeout.ErrIdle) {
		return strings.Replace(text, advice, instead, 1)
	}
	return text
}

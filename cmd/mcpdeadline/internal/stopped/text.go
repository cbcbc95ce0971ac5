// Package stopped makes the texts and answers that report to the host, and to the model, that a call was stopped: by a
// limit, by a person, or by the end of the server.
package stopped

import (
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// advice is a sentence for the author of a tool in the error of an idle limit. The proxy replaces it by instead,
// because its users usually cannot change the server.
const (
	advice  = "Tool should call heartbeat() during long work."
	instead = "The server has shown no sign of life."
)

// Text returns the text of an answer that reports err; see [toolcall.Text].
func Text(err error, partial string) string { return replaced(err, toolcall.Text(err, partial)) }

// Message returns the message of err, for logs and for the server.
func Message(err error) string { return replaced(err, err.Error()) }

// replaced returns text with advice replaced by instead, if err reports an idle limit.
func replaced(err error, text string) string {
	if errors.Is(err, timeout.ErrIdle) {
		return strings.Replace(text, advice, instead, 1)
	}
	return text
}

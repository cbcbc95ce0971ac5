package stream

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// ErrEventTooLarge is the error of an event stream that has an event of more than
// [MaxEvent] bytes. It is not reopened: the same event would come again.
var ErrEventTooLarge = errors.New("stream: event too large")

// A ReopenError says that the server has refused to reopen an event stream. As the error of
// a Read, the refusal is one that asking again does not change; in an [Outage] it may be
// another.
type ReopenError struct {
	StatusCode  int    // of the answer
	ContentType string // of the answer
	Err         error  // why the stream had to be reopened; io.ErrUnexpectedEOF if it ended
}

// Error names the answer: its status, or its type where the status is 200.
func (e *ReopenError) Error() string {
	if e.StatusCode == http.StatusOK {
		return "stream: not reopened: no event stream, but " + strconv.Quote(e.ContentType)
	}
	return "stream: not reopened: " + strconv.Itoa(e.StatusCode) + " " + http.StatusText(e.StatusCode)
}

// Unwrap returns Err.
func (e *ReopenError) Unwrap() error { return e.Err }

// An OutageError says that an event stream was given up because it could not be reopened for
// as long as the GiveUp of [Notifications] allows.
type OutageError struct{ Outage }

// Error has the time, the number of attempts and what became of the last.
func (e *OutageError) Error() string {
	return fmt.Sprintf("stream: not reopened within %v, attempts: %d: %v", human.Duration(e.Elapsed), e.Attempts, e.Err)
}

// Unwrap returns what became of the last attempt, and why the stream had been lost.
func (e *OutageError) Unwrap() []error { return []error{e.Err, e.Cause} }

// Timeout is true, as for every error of a limit.
func (e *OutageError) Timeout() bool { return true }

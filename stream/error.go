package stream

import (
	"errors"
	"net/http"
	"strconv"
)

// ErrEventTooLarge is the error of an event stream that has an event of more than
// [MaxEvent] bytes. It is not reopened: the same event would come again.
var ErrEventTooLarge = errors.New("stream: event too large")

// A ReopenError says that the server has refused to reopen an event stream, in a way
// that asking again does not change.
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

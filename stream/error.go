package stream

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// ErrEventTooLarge is the error of an event stream with an event of more than [MaxEvent] bytes, or of
// more than the limit given to [Events]. [Notifications] does not reopen the stream, because the same
// event would come again.
var ErrEventTooLarge = errors.New("stream: event too large")

// A ReopenError reports that the server has refused to reopen an event stream. A Read returns it
// only for a refusal that another attempt would not change; the Err of an [Outage] may also be a
// temporary refusal.
type ReopenError struct {
	StatusCode  int    // status of the response
	ContentType string // media type of the response
	Err         error  // why the stream was lost; io.ErrUnexpectedEOF if it ended
}

// Error includes the status of the response or, if that is 200, its media type.
func (e *ReopenError) Error() string {
	if e.StatusCode == http.StatusOK {
		return "stream: not reopened: no event stream: content type " + strconv.Quote(e.ContentType)
	}
	return "stream: not reopened: " + strconv.Itoa(e.StatusCode) + " " + http.StatusText(e.StatusCode)
}

// Unwrap returns Err.
func (e *ReopenError) Unwrap() error { return e.Err }

// An OutageError reports that an event stream was given up because it could not be reopened within
// the GiveUp of [Notifications].
type OutageError struct{ Outage }

// Error includes the elapsed time, the number of attempts and the error of the last one.
func (e *OutageError) Error() string {
	return fmt.Sprintf("stream: not reopened within %v, attempts: %d: %v", human.Duration(e.Elapsed), e.Attempts, e.Err)
}

// Unwrap returns the error of the last attempt and the reason why the stream was lost.
func (e *OutageError) Unwrap() []error { return []error{e.Err, e.Cause} }

// Timeout returns true, as for every error of a limit.
func (e *OutageError) Timeout() bool { return true }

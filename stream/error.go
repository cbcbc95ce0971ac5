package stream

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// ErrEventTooLarge is the error of an event stream with an event of more than 16 MiB, or of more than the limit given
// to [Events]. [Notifications] does not reopen such a stream, because the same event would come again.
var ErrEventTooLarge = errors.New("stream: event too large")

// A ReopenError reports that the server has refused to reopen an event stream. A Read returns it only for a refusal
// that another attempt would not change; the Err of an [OutageError] may also be a temporary refusal.
type ReopenError struct {
	StatusCode  int    // status of the response that refuses
	ContentType string // Content-Type header of the response
	Err         error  // the error by which the stream was lost; io.ErrUnexpectedEOF if it ended
}

// Error returns a text with the status of the response or, if that is 200, with the beginning of its ContentType.
func (e *ReopenError) Error() string {
	if e.StatusCode == http.StatusOK {
		return "stream: not reopened: no event stream: content type " + strconv.Quote(texts.Short(e.ContentType, 256))
	}
	return "stream: not reopened: " + strconv.Itoa(e.StatusCode) + " " + http.StatusText(e.StatusCode)
}

// Unwrap returns Err.
func (e *ReopenError) Unwrap() error { return e.Err }

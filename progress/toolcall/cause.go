package toolcall

import (
	"errors"
	"strings"
	"unicode"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/internal/waitadvice"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Causes of the abort of a call. [errors.Is] finds the cause in the error of such a call, and [CauseOf] returns a word
// for it.
var (
	// ErrClientTimeout means that the client has cancelled the call because a limit of the client was reached, or that
	// the server has stopped the call before such a limit because the call could not run on as a task or continuation.
	ErrClientTimeout = errors.New("the client's own limit was reached")
	// ErrStopped means that a person has stopped the call.
	ErrStopped = errors.New("a person has stopped the call")
	// ErrDisconnected means that the connection to the client has ended. Over HTTP, clients of protocol 2026-07-28
	// cancel a call by closing its connection, so such a cancellation cannot be told from a lost connection.
	ErrDisconnected = errors.New("the client has disconnected")
	// ErrSessionEnded means that the client has ended its session.
	ErrSessionEnded = errors.New("the client has ended the session")
	// ErrShutdown means that the server is shutting down. It is the cause with which
	// [Drain.Shutdown] aborts calls, and the Shutdown of task.Tasks aborts tasks.
	ErrShutdown = errors.New("the server is shutting down")
)

// A CancelledError is the cause with which an adapter aborts a call that its client has cancelled
// with notifications/cancelled. errors.Is finds [ErrClientTimeout] or [ErrStopped] in it if the
// reason says so.
type CancelledError struct {
	// Reason is the reason in the client's words. It is empty if the client gave none.
	Reason string
}

// maxReason is the largest number of bytes of a client's reason that is written to logs and answers.
const maxReason = 200

// Error returns a text that says that the client has cancelled the call, with the reason on one line, without
// control characters, which is cut after 200 bytes, with ...
func (e *CancelledError) Error() string {
	const text = "the client has cancelled the call"
	reason := e.short()
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// short returns the reason on one line, without control characters, cut to maxReason.
func (e *CancelledError) short() string {
	apart := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return texts.Short(strings.ToValidUTF8(strings.Join(strings.FieldsFunc(e.Reason, apart), " "), ""), maxReason)
}

// Is matches [ErrClientTimeout] if the reason contains "timeout", "timed out", "time out" or "deadline exceeded", and
// otherwise [ErrStopped] if the reason contains "user", "person" or "interrupt", all in upper or lower case. A reason
// such as "AbortError", or "The user aborted a request." of the Fetch API, matches neither, because it does not say who
// cancelled the call.
func (e *CancelledError) Is(target error) bool {
	switch target {
	case ErrClientTimeout:
		return e.timeout()
	case ErrStopped:
		// The Fetch API uses this text for every request that a program aborts.
		return !e.timeout() && hasAny(e.Reason, "user", "person", "interrupt") && !hasAny(e.Reason, "user aborted a request")
	}
	return false
}

func (e *CancelledError) timeout() bool {
	return hasAny(e.Reason, "timeout", "timed out", "time out", "deadline exceeded")
}

func hasAny(s string, words ...string) bool {
	s = strings.ToLower(s)
	for _, word := range words {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// CauseOf returns one word for the reason why a call that ended with err was aborted: client_timeout, person,
// disconnected, session_ended, shutdown, or client if the client has cancelled the call without a reason, or for
// another reason than the first two. It returns "" if err has none of these causes, if a limit stopped the execution,
// or if a method of err panics or does not return within 1 s. The words are few enough to be an attribute of metrics.
func CauseOf(err error) string {
	word := new(string)
	if err == nil || !texts.Ask(func() { *word = causeOf(err) }) {
		return ""
	}
	return *word
}

func causeOf(err error) string {
	var stop *timeout.Error
	if errors.As(err, &stop) {
		if stop.Kind != timeout.ErrAborted {
			return ""
		}
		err = stop.Cause // not the error of the tool, which stop wraps too
	}
	var cancelled *CancelledError
	switch {
	case err == nil:
	case errors.Is(err, ErrShutdown):
		return "shutdown"
	case errors.Is(err, ErrSessionEnded):
		return "session_ended"
	case errors.Is(err, ErrDisconnected):
		return "disconnected"
	case errors.Is(err, ErrClientTimeout):
		return "client_timeout"
	case errors.Is(err, ErrStopped):
		return "person"
	case errors.As(err, &cancelled):
		return "client"
	}
	return ""
}

// adviceOf returns advice for the model if a limit of the tool or of the client ended a wait for a person. It returns
// "" if err reports anything else.
func adviceOf(err error) string {
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() && !errors.Is(e.Cause, ErrClientTimeout) {
		return ""
	}
	return waitadvice.Of(e.Detail)
}

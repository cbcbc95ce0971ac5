package toolcall

import (
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/internal/waitadvice"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The causes with which calls are aborted. The error of such a call matches the cause with
// [errors.Is], and [CauseOf] returns a word for it.
var (
	// ErrClientTimeout means that the client has given up because a limit of its own was reached.
	ErrClientTimeout = errors.New("the client's own limit was reached")
	// ErrStopped means that a person has stopped the call.
	ErrStopped = errors.New("a person has stopped the call")
	// ErrDisconnected means that the connection to the client has ended. Over HTTP, a client that
	// hangs up to cancel its call, as clients of protocol 2026-07-28 do, looks like one whose
	// connection was lost.
	ErrDisconnected = errors.New("the client has disconnected")
	// ErrSessionEnded means that the client has ended its session.
	ErrSessionEnded = errors.New("the client has ended the session")
	// ErrShutdown means that the server is shutting down. It is the cause with which
	// [Drain.Shutdown] aborts calls.
	ErrShutdown = errors.New("the server is shutting down")
)

// A CancelledError is the cause with which an adapter aborts a call that its client has cancelled
// with notifications/cancelled. errors.Is finds [ErrClientTimeout] or [ErrStopped] in it if the
// reason says so.
type CancelledError struct {
	// Reason is the reason in the client's words. It is empty if the client gave none.
	Reason string
}

// maxReason bounds how much of a reason Error repeats: the reason comes from outside and goes into
// logs and answers.
const maxReason = 200

// Error says that the client has cancelled the call, and the first 200 bytes of the reason.
func (e *CancelledError) Error() string {
	const text = "the client has cancelled the call"
	reason := e.short()
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func (e *CancelledError) short() string {
	reason := strings.Join(strings.Fields(e.Reason), " ")
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "..."
	}
	return strings.ToValidUTF8(reason, "")
}

// Is matches [ErrClientTimeout] if the reason speaks of a timeout or a deadline, and otherwise
// [ErrStopped] if it names a user, a person or an interrupt. It claims no more than that: a reason
// such as "AbortError", or fetch's "The user aborted a request.", does not tell who aborted.
func (e *CancelledError) Is(target error) bool {
	switch target {
	case ErrClientTimeout:
		return e.timeout()
	case ErrStopped:
		// Fetch says so of any request that a program aborts.
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

// CauseOf returns one word for the reason why the call that err is about was aborted: client_timeout,
// person, disconnected, session_ended, shutdown, or client for a cancellation with any other reason.
// It returns "" if err has none of these causes, or if a limit stopped the execution. The words are
// few enough to be an attribute of metrics.
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
		err = stop.Cause // the cause, and not the error that the tool has returned
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

// adviceOf returns the advice about a wait for a person that a limit of the tool, or of the client, has cut short. A
// client that cancels for another reason needs none.
func adviceOf(err error) string {
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() && !errors.Is(e.Cause, ErrClientTimeout) {
		return ""
	}
	return waitadvice.Of(e.Detail)
}

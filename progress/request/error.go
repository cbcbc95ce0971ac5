package request

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// CodeTimeout is the JSON-RPC code of a request that timed out at the client. No specification
// assigns one; hosts know this one from the TypeScript SDK. A server may answer with the same code,
// but only a timeout at the client is also an [*Error].
const CodeTimeout = -32001

// An Error is the outcome of a request that was stopped, by a limit or by its caller. errors.As
// finds the [*timeout.Error] in it, which has the limit and the elapsed time, and whose Tool is the
// method. errors.Is finds context.DeadlineExceeded or context.Canceled, and the cause of the
// caller's context.
type Error struct {
	Doing string         // what was stopped, such as calling "tools/call"
	Reset bool           // progress would have renewed the limit
	Stop  *timeout.Error // never nil
}

// Timeout reports whether a limit stopped the request, rather than its caller. CodeTimeout, Message and
// Data apply only then.
func (e *Error) Timeout() bool { return e.Stop.Timeout() }

// Message returns the message of the JSON-RPC error, the same as in the TypeScript SDK.
func (e *Error) Message() string {
	if e.Stop.Kind == timeout.ErrTotal {
		return "Maximum total timeout exceeded"
	}
	return "Request timed out"
}

// Data returns the data of the JSON-RPC error, the same as in the TypeScript SDK: an object with the
// limit, as timeout or maxTotalTimeout, and totalElapsed, in milliseconds.
func (e *Error) Data() json.RawMessage {
	name := "timeout"
	if e.Stop.Kind == timeout.ErrTotal {
		name = "maxTotalTimeout"
	}
	data, _ := json.Marshal(map[string]float64{name: millis(e.Stop.Limit), "totalElapsed": millis(e.Stop.Elapsed)})
	return data
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Reason returns the reason for the request's notifications/cancelled, in words for people: the limit
// that stopped it, as in "timeout of 60 s without progress" or "timeout of 30 min in total", or that the
// caller cancelled it, with the cause of the caller's context if there is one.
func (e *Error) Reason() string {
	switch e.Stop.Kind {
	case timeout.ErrAborted:
		if cause := e.Stop.Cause; cause != nil && cause != context.Canceled {
			return "cancelled: " + texts.Of(cause)
		}
		return "cancelled by the client"
	case timeout.ErrTotal:
		return "timeout of " + spoken(e.Stop.Limit) + " in total"
	}
	if e.Reset {
		return "timeout of " + spoken(e.Stop.Limit) + " without progress"
	}
	return "timeout of " + spoken(e.Stop.Limit) + " without an answer"
}

// spoken returns d as a number and one unit, such as "90 s".
func spoken(d time.Duration) string {
	switch {
	case d < time.Second:
		return human.Number(millis(d)) + " ms"
	case d > 2*time.Minute && d%time.Minute == 0:
		return human.Number(d.Minutes()) + " min"
	}
	return human.Number(d.Seconds()) + " s"
}

// Error says what was stopped and by which limit. It adds the elapsed time if that differs from the limit.
func (e *Error) Error() string {
	limit := e.Stop.Limit
	if e.Stop.Cause != nil { // it is what was left of the caller's deadline
		limit = human.Duration(limit)
	}
	why := fmt.Sprintf("%s: no answer for %v", e.Message(), limit)
	switch {
	case e.Stop.Kind == timeout.ErrAborted:
		why = texts.Of(cmp.Or(e.Stop.Cause, context.Canceled))
	case e.Stop.Kind == timeout.ErrTotal:
		why = fmt.Sprintf("%s: %v", e.Message(), limit)
	case e.Reset:
		why = fmt.Sprintf("%s: no progress for %v, %v after the start", e.Message(), limit, human.Duration(e.Stop.Elapsed))
	}
	return e.Doing + ": " + why
}

// Unwrap returns Stop.
func (e *Error) Unwrap() error { return e.Stop }

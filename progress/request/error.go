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

// CodeTimeout is the JSON-RPC error code of a request that timed out at the client. No specification assigns such a
// code; the TypeScript SDK uses this value. A server may answer with the same code, but only a timeout at the client is
// also an [*Error].
const CodeTimeout = -32001

// An Error reports that a request, or a wait of [Retry], was stopped by a limit or by the caller. errors.As finds the
// [*timeout.Error] in it, which has the limit and the elapsed time. The Tool of that error is the method of the
// request. errors.Is finds context.DeadlineExceeded or context.Canceled, and the cause of the caller's context.
type Error struct {
	Doing string         // what was stopped, such as calling "tools/call"
	Reset bool           // whether progress renews the Timeout of the request
	Stop  *timeout.Error // the limit or the abort; not nil in an error of this package
}

// Timeout reports whether a limit or a deadline of the caller's context stopped the request, and not a cancellation
// by the caller. [CodeTimeout], Message and Data apply only to an error for which Timeout returns true.
func (e *Error) Timeout() bool { return e.stop().Timeout() }

// Message returns the message of the JSON-RPC error for a timeout, with the wording of the TypeScript SDK: "Maximum
// total timeout exceeded" if a total stopped the request, and otherwise "Request timed out".
func (e *Error) Message() string {
	if e.stop().Kind == timeout.ErrTotal {
		return "Maximum total timeout exceeded"
	}
	return "Request timed out"
}

// Data returns the data of the JSON-RPC error for a timeout, in the form of the TypeScript SDK: an object with the
// limit, as maxTotalTimeout if a total stopped the request and otherwise as timeout, and the elapsed time, as
// totalElapsed, both in milliseconds.
func (e *Error) Data() json.RawMessage {
	stop, name := e.stop(), "timeout"
	if stop.Kind == timeout.ErrTotal {
		name = "maxTotalTimeout"
	}
	data, _ := json.Marshal(map[string]float64{name: millis(stop.Limit), "totalElapsed": millis(stop.Elapsed)})
	return data
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Reason returns a text for the reason field of notifications/cancelled. The text names the limit that stopped the
// request, such as "timeout of 60 s without progress" or "timeout of 30 min in total". If the caller cancelled the
// request, the text says so, with the cause of the caller's context if there is one.
func (e *Error) Reason() string {
	stop := e.stop()
	switch stop.Kind {
	case timeout.ErrAborted:
		if cause := stop.Cause; cause != nil && cause != context.Canceled {
			return "cancelled: " + texts.Of(cause)
		}
		return "cancelled by the client"
	case timeout.ErrTotal:
		return "timeout of " + spoken(stop.Limit) + " in total"
	}
	if e.Reset {
		return "timeout of " + spoken(stop.Limit) + " without progress"
	}
	return "timeout of " + spoken(stop.Limit) + " without an answer"
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

// Error says what was stopped, and by which limit or cause. For a Timeout that progress renews, it adds the elapsed
// time.
func (e *Error) Error() string {
	stop := e.stop()
	limit := stop.Limit
	if stop.Cause != nil { // the limit was the rest of the caller's deadline, which is no round number
		limit = human.Duration(limit)
	}
	why := fmt.Sprintf("%s: no answer for %v", e.Message(), limit)
	switch {
	case stop.Kind == timeout.ErrAborted:
		why = texts.Of(cmp.Or(stop.Cause, context.Canceled))
	case stop.Kind == timeout.ErrTotal:
		why = fmt.Sprintf("%s: %v", e.Message(), limit)
	case e.Reset:
		why = fmt.Sprintf("%s: no progress for %v, %v after the start", e.Message(), limit, human.Duration(stop.Elapsed))
	}
	return cmp.Or(e.Doing, "a request") + ": " + why
}

// Unwrap returns Stop, or an empty *timeout.Error if Stop is nil.
func (e *Error) Unwrap() error { return e.stop() }

// stop returns Stop, or an error without a Kind if Stop is nil, as in a value that a test has made.
func (e *Error) stop() *timeout.Error {
	if e.Stop == nil {
		return new(timeout.Error)
	}
	return e.Stop
}

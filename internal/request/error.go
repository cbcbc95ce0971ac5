package request

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Code is the JSON-RPC code of a request that timed out (SPEC 8.2). No specification
// assigns one; this is the TypeScript SDK's, which hosts know.
const Code = -32001

// An Error is the outcome of a request that was stopped, by a limit or by its caller.
// errors.As finds the [*timeout.Error] in it, which has the limit and the elapsed time,
// and whose Tool is the method; so errors.Is tells context.DeadlineExceeded from
// context.Canceled, and finds the cause of the caller's context.
type Error struct {
	Method string
	Reset  bool // progress would have renewed the limit
	Stop   *timeout.Error
}

// Timeout reports whether a limit stopped the request, and not its caller. Only then do
// Code, Message and Data apply.
func (e *Error) Timeout() bool { return e.Stop.Timeout() }

// Message is what the TypeScript SDK says.
func (e *Error) Message() string {
	if e.Stop.Kind == timeout.Total {
		return "Maximum total timeout exceeded"
	}
	return "Request timed out"
}

// Data is what the TypeScript SDK puts beside that, in milliseconds: the limit, as
// timeout or maxTotalTimeout, and totalElapsed.
func (e *Error) Data() json.RawMessage {
	name := "timeout"
	if e.Stop.Kind == timeout.Total {
		name = "maxTotalTimeout"
	}
	data, _ := json.Marshal(map[string]float64{name: millis(e.Stop.Limit), "totalElapsed": millis(e.Stop.Elapsed)})
	return data
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Error names the method, the limit and, where it differs, the elapsed time.
func (e *Error) Error() string {
	switch {
	case e.Stop.Kind == timeout.Aborted && e.Stop.Cause != nil:
		return fmt.Sprintf("calling %q: %v", e.Method, e.Stop.Cause)
	case e.Stop.Kind == timeout.Aborted:
		return fmt.Sprintf("calling %q: %v", e.Method, context.Canceled)
	case e.Stop.Kind == timeout.Total:
		return fmt.Sprintf("calling %q: %s: %v", e.Method, e.Message(), e.Stop.Limit)
	case e.Reset:
		return fmt.Sprintf("calling %q: %s: no progress for %v, %v after the start", e.Method, e.Message(), e.Stop.Limit, e.Stop.Elapsed.Round(time.Millisecond))
	}
	return fmt.Sprintf("calling %q: %s: no answer for %v", e.Method, e.Message(), e.Stop.Limit)
}

// Unwrap gives the *timeout.Error.
func (e *Error) Unwrap() error { return e.Stop }

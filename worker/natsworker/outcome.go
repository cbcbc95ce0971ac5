package natsworker

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Reject returns the error for a message that will never succeed: it is terminated, with the
// text of err as the reason (up to 1 KiB), and not redelivered. Reject(nil) is nil.
//
// It does not count where the function was stopped, by a limit or at shutdown: an error of a
// cancelled context is easily mistaken for one of the message.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejectError{err}
}

type rejectError struct{ err error }

func (e *rejectError) Error() string { return fmt.Sprint(e.err) } // which survives a nil pointer
func (e *rejectError) Unwrap() error { return e.err }

// After returns the error for a message to be redelivered in d instead of after the back-off; at
// once if d is not positive. After(d, nil) is an error too, for a message whose time has not
// come. A [Reject] in err's tree takes precedence.
func After(d time.Duration, err error) error { return &afterError{d, err} }

type afterError struct {
	delay time.Duration
	err   error
}

func (e *afterError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("again in %v", e.delay)
	}
	return e.err.Error()
}

func (e *afterError) Unwrap() error { return e.err }

// An outcome is what is sent to the server about an execution.
type outcome struct {
	verb   verb
	delay  time.Duration // of a nak
	reason string        // of a term
}

type verb int

const (
	ack verb = iota
	nak
	term
	inProgress
)

// decide returns the outcome for the error of an execution. ctx is that which ends with the
// worker, not with the lease.
func (w *worker) decide(ctx context.Context, err error, delivery uint64) outcome {
	// Not errors.As, which would also find those of executions within this one.
	stopped, _ := err.(*timeout.Error)
	var rejected *rejectError
	if stopped == nil && errors.As(err, &rejected) {
		return outcome{verb: term, reason: reason(text(err))}
	}
	if w.maxDeliver > 0 && delivery >= uint64(w.maxDeliver) {
		// After a nak the server would keep it in the stream, undelivered, without a reason.
		return outcome{verb: term, reason: reason(fmt.Sprintf("delivery %d of %d: %s", delivery, w.maxDeliver, text(err)))}
	}
	o := outcome{verb: nak, delay: w.backoff(delivery)}
	var after *afterError
	switch {
	case stopped == nil:
		if errors.As(err, &after) {
			o.delay = after.delay
		}
	case stopped.Kind == timeout.KindAborted && ctx.Err() != nil: // this worker stops
		o.delay = 0
	case stopped.Timeout() && delivery == 1: // the cause may lie with this worker
		o.delay = 0
	}
	if stopped != nil && stopped.Abandoned {
		// The function works on. Avoid that the next delivery runs beside it, if possible.
		o.delay = max(o.delay, stopped.Limits.Grace)
	}
	return o
}

// text returns the error's text, with the newest detail of an execution that was stopped.
func text(err error) string {
	if err == nil {
		return ""
	}
	if stopped, ok := err.(*timeout.Error); ok && stopped.Detail != nil {
		return fmt.Sprintf("%v; last: %v", err, stopped.Detail)
	}
	return fmt.Sprint(err) // which survives a nil pointer
}

// maxReason bounds a reason. One above the server's limit for a payload could not be sent, and
// the message would not be terminated at all.
const maxReason = 1024

func reason(text string) string {
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason
	for cut > maxReason-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

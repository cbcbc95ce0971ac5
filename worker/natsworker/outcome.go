package natsworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Reject returns an error that wraps err and means that the message can never succeed. If the function returns it, or
// an error that wraps it, the message is terminated, with the text of the returned error as the reason (up to 1 KiB),
// and not redelivered. Reject(nil) returns nil.
//
// Reject has no effect if the function was stopped, by a limit or at shutdown, because a function
// can mistake the error of its cancelled context for an error of the message.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejectError{err}
}

type rejectError struct{ err error }

func (e *rejectError) Error() string { return fmt.Sprint(e.err) } // Sprint recovers from the panic of a nil pointer
func (e *rejectError) Unwrap() error { return e.err }

// After returns an error that wraps err and makes the server redeliver the message after d, instead of after the
// Backoff of the [Options]. If d is not positive, the message is redelivered at once. After(d, nil) also returns an
// error, for a message that cannot be handled yet. If err wraps an error of [Reject], the message is terminated. After
// has no effect if the function was stopped, or in the last delivery.
func After(d time.Duration, err error) error { return &afterError{d, err} }

type afterError struct {
	delay time.Duration
	err   error
}

func (e *afterError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("again in %v", e.delay.Round(time.Millisecond))
	}
	return e.err.Error()
}

func (e *afterError) Unwrap() error { return e.err }

// An outcome is the acknowledgement that ends a delivery.
type outcome struct {
	verb   verb
	delay  time.Duration // the delay of a nak
	reason string        // the reason of a term
}

type verb int

const (
	ack verb = iota
	nak
	term
	inProgress
)

// A verdict holds the properties of an error that determine the outcome.
type verdict struct {
	text     string
	rejected bool        // the error wraps one of Reject
	after    *afterError // the error of After that the error wraps, or nil
}

// understand returns the verdict on an error of the function. It must be called on the function's goroutine, under its
// limits, because the methods of the error may block or panic.
func understand(err error) *verdict {
	v := &verdict{text: text(err)}
	var rejected *rejectError
	v.rejected = errors.As(err, &rejected)
	errors.As(err, &v.after)
	return v
}

// decide returns the outcome for err, an error of lease.Run, and the verdict v on it. delivery is the number of the
// delivery, from 1. ctx is done if the worker is stopping.
func (w *worker) decide(ctx context.Context, err error, v *verdict, delivery uint64) outcome {
	// A type assertion, because errors.As would also find errors of inner executions.
	stopped, _ := err.(*timeout.Error)
	if v.rejected {
		return outcome{verb: term, reason: reason(v.text)}
	}
	if w.maxDeliver > 0 && delivery >= uint64(w.maxDeliver) {
		// After a nak, the server would not redeliver the message, and would publish no reason.
		return outcome{verb: term, reason: reason(fmt.Sprintf("delivery %d of %d: %s", delivery, w.maxDeliver, v.text))}
	}
	o := outcome{verb: nak, delay: w.backoff(delivery)}
	switch {
	case stopped == nil:
		if v.after != nil {
			o.delay = v.after.delay
		}
	case stopped.Kind == timeout.ErrAborted && ctx.Err() != nil: // this worker is stopping
		o.delay = 0
	case stopped.Timeout() && delivery == 1: // perhaps another worker succeeds at once
		o.delay = 0
	}
	if stopped != nil && stopped.Abandoned {
		// The function still runs, and the delay makes it less likely that the next delivery runs at the same time.
		o.delay = max(o.delay, stopped.Limits.Grace)
	}
	return o
}

// text returns the text of an error and, for a stopped execution, its newest heartbeat detail.
func text(err error) string {
	switch err := err.(type) {
	case nil:
		return ""
	case *timeout.Error:
		if err.Detail != nil {
			return err.Error() + "; last: " + bounded(err.Detail)
		}
		return err.Error()
	case *timeout.PanicError:
		return err.Error()
	}
	return bounded(err)
}

// bounded returns the text of a detail or an error. Its size and the time for its methods are bounded, as in the text
// of a [*timeout.PanicError].
func bounded(v any) string {
	return strings.TrimPrefix((&timeout.PanicError{Value: v}).Error(), "panic: ")
}

// maxReason is the largest size of a reason, in bytes. A term above the server's limit on payloads could not be sent.
const maxReason = 1024

// reason returns the first maxReason bytes of text, cut at a character.
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

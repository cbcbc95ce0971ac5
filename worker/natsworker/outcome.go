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

// Reject returns an error that marks a message as one that can never succeed. If the function returns
// it, the message is terminated, with the text of err as the reason (up to 1 KiB), and not redelivered.
// Reject(nil) returns nil.
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

func (e *rejectError) Error() string { return fmt.Sprint(e.err) } // Sprint survives a nil pointer
func (e *rejectError) Unwrap() error { return e.err }

// After returns an error that makes the server redeliver the message after d, and not after the
// Backoff of the [Options]. If d is not positive, the message is redelivered at once. After(d, nil) is
// an error too, for a message whose time has not come. If err wraps a [Reject], that takes
// precedence.
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

// A verdict is the finding about the error of an execution.
type verdict struct {
	text     string
	rejected bool
	after    *afterError
}

// understand looks into an error of the function. It is called on the function's goroutine and under its limits, since
// the methods of the error may block or panic.
func understand(err error) *verdict {
	v := &verdict{text: text(err)}
	var rejected *rejectError
	v.rejected = errors.As(err, &rejected)
	errors.As(err, &v.after)
	return v
}

// verdict returns the verdict on err. An error that the function returned by itself was examined when it returned;
// a function that was stopped may still be writing its verdict.
func (d *delivery) verdict(err error) *verdict {
	switch err.(type) {
	case *timeout.Error:
	case *timeout.PanicError: // a method of the function's error may have panicked, too
	default:
		if d.returnedVerdict != nil {
			return d.returnedVerdict
		}
	}
	return &verdict{text: text(err)}
}

// decide returns the outcome for the error of an execution. ctx ends with the worker, not with the lease.
func (w *worker) decide(ctx context.Context, err error, v *verdict, delivery uint64) outcome {
	// Not errors.As, which would also find the errors of inner executions.
	stopped, _ := err.(*timeout.Error)
	if v.rejected {
		return outcome{verb: term, reason: reason(v.text)}
	}
	if w.maxDeliver > 0 && delivery >= uint64(w.maxDeliver) {
		// After a nak the server would keep the message in the stream, undelivered, without a reason.
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
	case stopped.Timeout() && delivery == 1: // this worker may be the cause
		o.delay = 0
	}
	if stopped != nil && stopped.Abandoned {
		// The function still runs. If possible, the next delivery should not run beside it.
		o.delay = max(o.delay, stopped.Limits.Grace)
	}
	return o
}

// text returns the error's text, with the newest detail of an execution that was stopped.
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

// bounded returns the text of a detail or an error, in the same bounds of size and time as the text of a panic's
// value.
func bounded(v any) string {
	return strings.TrimPrefix((&timeout.PanicError{Value: v}).Error(), "panic: ")
}

// maxReason bounds a reason. A term above the server's limit for a payload could not be sent, and
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

package hbjetstream

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Reject is what a function returns for a message that will never succeed: it is terminated
// with the text of err as the reason, and not delivered again. Of a nil err it is nil.
//
// A function that was stopped, by a limit or at shutdown, has no say: its message is
// delivered again although it returns a Reject, since errors of a cancelled context are
// easily taken for those of the message.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejectError{err}
}

type rejectError struct{ err error }

func (e *rejectError) Error() string { return e.err.Error() }
func (e *rejectError) Unwrap() error { return e.err }

// After is what a function returns to have its message delivered again in d, and not after
// the back-off; at once if d is not positive. It is an error even where err is nil, for a
// message whose time has not come. [Reject] in err's tree goes before it.
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

// An outcome is what the server is to hear of an execution.
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

// judge decides what the error of an execution means for its message. ctx is what the
// execution ran under, without the part that ends with the lease.
func (w *worker) judge(ctx context.Context, err error, delivery uint64) outcome {
	// Not errors.As: executions within this one may have left theirs anywhere in the tree.
	stopped, _ := err.(*timeout.Error)
	var rejected *rejectError
	if stopped == nil && errors.As(err, &rejected) {
		return outcome{verb: term, reason: reason(err.Error())}
	}
	if w.maxDeliver > 0 && delivery >= uint64(w.maxDeliver) {
		// The server would keep it in the stream and deliver it to nobody, without a reason.
		return outcome{verb: term, reason: reason(fmt.Sprintf("delivery %d of %d: %s", delivery, w.maxDeliver, text(err)))}
	}
	o := outcome{verb: nak, delay: w.backoff(delivery)}
	var after *afterError
	switch {
	case stopped == nil:
		if errors.As(err, &after) {
			o.delay = after.delay
		}
	case stopped.Kind == timeout.Aborted && ctx.Err() != nil: // this worker stops
		o.delay = 0
	case stopped.Timeout() && delivery == 1: // it may have been the worker's fault
		o.delay = 0
	}
	if stopped != nil && stopped.Abandoned {
		// The function works on. Whoever is next should not find it at work.
		o.delay = max(o.delay, stopped.Limits.Grace)
	}
	return o
}

// text is what there is to say of an execution in one line: how it ended and, where it was
// stopped, how far it had got.
func text(err error) string {
	if err == nil {
		return ""
	}
	if stopped, ok := err.(*timeout.Error); ok && stopped.Detail != nil {
		return fmt.Sprintf("%v; last: %v", err, stopped.Detail)
	}
	return err.Error()
}

// maxReason keeps a reason, which goes into an advisory, from exceeding what the server
// takes as a message: then the message would not be terminated at all.
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

package mcpsdk

import (
	"context"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// reasoned is the context of a request that is passed to the SDK. When it has ended, the SDK sends a
// notifications/cancelled with the text of its Err as the reason.
//
// A transport that rewrites the notification would do the same, but the program would have to wrap its
// transport, and over HTTP the wrapper would have to read every body.
type reasoned struct {
	context.Context
	reset bool // the request has a progress token, so progress renews the limit
}

func (c reasoned) Err() error {
	err := c.Context.Err()
	if err == nil {
		return nil
	}
	stop, ok := context.Cause(c.Context).(*timeout.Error)
	switch {
	case err != context.DeadlineExceeded:
		stop = &timeout.Error{Kind: timeout.ErrAborted, Cause: context.Cause(c.Context)}
	case !ok: // a deadline of the caller ended a request without limits
		return err
	}
	return &ended{err, (&request.Error{Reset: c.reset, Stop: stop}).Reason()}
}

// An ended is the error of a reasoned context. Its text is the reason of the cancellation.
type ended struct {
	err    error
	reason string
}

func (e *ended) Error() string { return e.reason }
func (e *ended) Unwrap() error { return e.err }

// plain returns the error inside an ended, and any other error unchanged.
func plain(err error) error {
	if e, ok := err.(*ended); ok {
		return e.err
	}
	return err
}

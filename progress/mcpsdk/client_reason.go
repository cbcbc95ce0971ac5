package mcpsdk

import (
	"context"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// reasoned is the context of a request that the SDK gets. The text of its Err is the reason of the
// notifications/cancelled that the SDK sends when the context has ended.
//
// Rejected: a transport that changes the notification on its way, which the program would have to
// wrap, and which over HTTP would have to read every body.
type reasoned struct {
	context.Context
	reset bool // progress renews the limit
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
	case !ok: // a deadline of the caller's, of a request without limits
		return err
	}
	return &ended{err, (&request.Error{Reset: c.reset, Stop: stop}).Reason()}
}

// An ended is the Err of a context with the reason as its text.
type ended struct {
	err    error
	reason string
}

func (e *ended) Error() string { return e.reason }
func (e *ended) Unwrap() error { return e.err }

// plain returns the error of a request without the reason.
func plain(err error) error {
	if e, ok := err.(*ended); ok {
		return e.err
	}
	return err
}

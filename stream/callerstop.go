package stream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A callerStop reports that the caller's context, and not silence, stopped a stream. Its text names the stream, because
// that of the *timeout.Error in it names a tool.
type callerStop struct{ stop *timeout.Error }

// byCaller returns err as a callerStop if it is a *timeout.Error.
func byCaller(err error) error {
	if stop := (*timeout.Error)(nil); errors.As(err, &stop) {
		return &callerStop{stop}
	}
	return err
}

func (e *callerStop) Error() string {
	text := "stream: aborted"
	switch {
	case !e.Timeout():
	case e.stop.Elapsed > 0:
		text = "stream: the caller's deadline passed after " + human.Duration(e.stop.Elapsed).String()
	default: // the stream did not begin
		text = "stream: the caller's deadline has passed"
	}
	switch cause := e.stop.Cause; cause {
	case nil, context.Canceled, context.DeadlineExceeded:
		return text
	default:
		return text + ": " + texts.Part(cause)
	}
}

func (e *callerStop) Unwrap() error { return e.stop }

func (e *callerStop) Timeout() bool { return e.stop.Timeout() }

// A life is the context of a stream. It ends with the caller's context, but after opened is set no longer at that
// context's deadline.
type life struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	opened atomic.Bool
}

func follow(caller context.Context) *life {
	l := new(life)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, func() {
		if !l.opened.Load() || caller.Err() != context.DeadlineExceeded {
			cancel(context.Cause(caller))
		}
	})
	l.ctx = ctx
	l.end = func(cause error) {
		stop()
		cancel(cause)
	}
	return l
}

// ending is a body whose Close ends its life.
type ending struct {
	io.ReadCloser
	life *life
}

func (e *ending) Close() error {
	defer e.life.end(nil)
	return e.ReadCloser.Close()
}

package httptimeout

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// farewell bounds the time for sending the rest after the handler has been stopped, to a client that may
// read nothing.
const farewell = time.Second

// errReturned is the error for a goroutine that outlives its handler.
var errReturned = errors.New("httptimeout: the handler has returned")

// refused returns why the handler may no longer write, or nil. mu is held.
func (w *writer) refused() error {
	if w.ctx.Err() == nil {
		return nil
	}
	if w.returned {
		return errReturned
	}
	return refusal(w.ctx)
}

// refusal returns the error for calls of a stopped handler. It is a timeout only if there was one.
func refusal(ctx context.Context) error {
	cause := context.Cause(ctx)
	if stop, ok := cause.(*timeout.Error); ok && stop.Timeout() {
		return http.ErrHandlerTimeout
	}
	return &stoppedError{cause}
}

// A stoppedError makes its text only when it is asked for: the text of a cause is made by the caller's code, and mu may
// be held when the error is made.
type stoppedError struct{ cause error }

func (e *stoppedError) Error() string {
	return "httptimeout: the handler was stopped: " + texts.Of(e.cause)
}
func (e *stoppedError) Unwrap() error { return e.cause }

// pass calls f, which calls the server. mu is held.
func (w *writer) pass(f func() error) error {
	w.calling.Lock()
	if w.stopped { // since refused was asked; nothing would interrupt f
		w.calling.Unlock()
		return refusal(w.ctx)
	}
	w.called = true
	w.calling.Unlock()
	defer func() {
		w.calling.Lock()
		defer w.calling.Unlock()
		w.called = false
	}()
	return f()
}

// interrupt ends a call that is in progress when the handler is stopped, such as a write to a client
// that reads nothing. A call that nothing blocks gets a moment to end by itself; otherwise the client
// would get a response that was cut before its first byte.
func (w *writer) interrupt() {
	w.calling.Lock()
	defer w.calling.Unlock()
	w.stopped = true
	if w.called {
		w.interrupted = true
		_ = w.control.SetWriteDeadline(time.Now().Add(moment))
	}
}

const moment = 50 * time.Millisecond

var longAgo = time.Unix(1, 0)

// close takes the server's ResponseWriter from the handler when the execution is over. It waits for a
// call in progress, and reports whether the response can still be replaced.
func (w *writer) close() (unused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.calling.Lock()
	defer w.calling.Unlock()
	if w.interrupted && !w.hijacked {
		_ = w.control.SetWriteDeadline(time.Now().Add(farewell)) // otherwise the deadline of interrupt would end the writes that follow
	}
	return !w.out
}

// allowAnswer extends a write deadline that has passed, or is about to, so that the response in place of
// the handler's can be sent: a client that gets nothing may send its request again. It is called after
// close.
func (w *writer) allowAnswer() {
	if !w.deadline.IsZero() && time.Until(w.deadline) < farewell {
		_ = w.control.SetWriteDeadline(time.Now().Add(farewell))
	}
}

// replaceable reports whether the response of a stopped handler can still be replaced.
func (w *writer) replaceable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.out && !w.closed
}

// cut ends the response of a stopped handler, part of which is out. It sends the part that the server
// still holds: a client that gets nothing at all may send its request again, as Go's does, and the
// handler would run twice. The server then closes the connection, or the stream.
func (w *writer) cut() {
	if w.hijacked {
		return
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(farewell))
	_ = w.control.Flush()
	if !w.endsByClosing() {
		return
	}
	// Closing the connection would say that the response is complete; resetting it does not.
	conn, _, err := w.control.Hijack()
	if err != nil {
		return
	}
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS, which would send a proper end
		conn = c.NetConn()
	}
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// endsByClosing reports whether the response has neither a length nor chunks, as one to
// HTTP/1.0, which some proxies speak to their servers.
func (w *writer) endsByClosing() bool {
	identity := w.begun.Get("Transfer-Encoding") == "identity"
	length, err := strconv.ParseInt(w.begun.Get("Content-Length"), 10, 64)
	none := err != nil || length < 0 // the server does not send such a length
	return none && (identity || !w.request.ProtoAtLeast(1, 1))
}

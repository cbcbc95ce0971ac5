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

// farewell is the longest time for sending the rest of a response after a stop, to a client that may not read.
const farewell = time.Second

// errReturned is the error of a write by a goroutine that outlives its handler.
var errReturned = errors.New("httptimeout: the handler has returned")

// refused returns the error with which calls of the handler fail, or nil if the handler may still write. The caller
// holds mu.
func (w *writer) refused() error {
	if w.ctx.Err() == nil {
		return nil
	}
	if w.returned {
		return errReturned
	}
	return refusal(w.ctx)
}

// refusal returns the error with which calls of a stopped handler fail: http.ErrHandlerTimeout after a timeout, and
// otherwise an error that names the cause.
func refusal(ctx context.Context) error {
	cause := context.Cause(ctx)
	if stop, ok := cause.(*timeout.Error); ok && stop.Timeout() {
		return http.ErrHandlerTimeout
	}
	return &stoppedError{cause}
}

// A stoppedError is the error with which calls fail after an abort. It makes its text in Error, because that may call
// the caller's code, and mu may be held when the error is created.
type stoppedError struct{ cause error }

func (e *stoppedError) Error() string {
	return "httptimeout: the handler was stopped: " + texts.Of(e.cause)
}
func (e *stoppedError) Unwrap() error { return e.cause }

// pass calls f, which calls the server's ResponseWriter, unless the handler has been stopped. The caller holds mu.
func (w *writer) pass(f func() error) error {
	w.calling.Lock()
	if w.stopped { // stopped after the call of refused; interrupt would not end f
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

// interrupt ends a call of the server's ResponseWriter that is in progress when the handler is stopped, such as a
// write to a client that does not read. The write deadline lies a moment ahead: a call that does not block can end
// first, and the client does not get a response that is cut before its first byte.
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

// close reserves the server's ResponseWriter for ServeHTTP when the execution is over. It waits for a call in
// progress. unused reports whether the response can still be replaced.
func (w *writer) close() (unused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.calling.Lock()
	defer w.calling.Unlock()
	if w.interrupted && !w.hijacked {
		_ = w.control.SetWriteDeadline(time.Now().Add(farewell)) // replaces the deadline of interrupt
	}
	return !w.out
}

// allowAnswer extends a write deadline that has passed or is about to, so that the response in place of the handler's
// can be sent: a client that gets no response may send its request again. It is called after close.
func (w *writer) allowAnswer() {
	if !w.deadline.IsZero() && time.Until(w.deadline) < farewell {
		_ = w.control.SetWriteDeadline(time.Now().Add(farewell))
	}
}

// replaceable reports whether the response of a stopped handler can still be replaced. It returns false if a part of
// the response is out, and after close.
func (w *writer) replaceable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.out && !w.closed
}

// cut ends the response of a stopped handler, part of which is out. It flushes the part that the server still holds:
// a client that gets no byte may send its request again, as Go's does, and the handler would run twice. The server
// then closes the connection, or resets the stream.
func (w *writer) cut() {
	if w.hijacked {
		return
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(farewell))
	_ = w.control.Flush()
	if !w.endsByClosing() {
		return
	}
	// Closing the connection would mark the response as complete; a reset does not.
	conn, _, err := w.control.Hijack()
	if err != nil {
		return
	}
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS, whose Close would send a regular end of the data
		conn = c.NetConn()
	}
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// endsByClosing reports whether the end of the connection completes the response, because it has neither a length nor
// chunks. That is so for HTTP/1.0, which some proxies use to their servers.
func (w *writer) endsByClosing() bool {
	identity := w.begun.Get("Transfer-Encoding") == "identity"
	length, err := strconv.ParseInt(w.begun.Get("Content-Length"), 10, 64)
	none := err != nil || length < 0 // the server omits an invalid length
	return none && (identity || !w.request.ProtoAtLeast(1, 1))
}

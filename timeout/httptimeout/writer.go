package httptimeout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A writer is the handler's ResponseWriter. It forwards calls to the server's ResponseWriter until the
// execution is stopped.
//
// Headers are a map of their own: an abandoned handler may write to it at any time, and the
// server reads its own.
//
// The beginning of a response is held here, up to as many bytes as net/http holds itself
// before it sends anything, so the client sees no difference until the handler is stopped:
// then a response that is still here is dropped, and the 503 takes its place. Passing each
// write on at once, and flushing at the stop, was the alternative: it needs no copy, but tells
// the client "200 OK" where nothing obliged us to.
type writer struct {
	server  http.ResponseWriter
	control *http.ResponseController
	request *http.Request   // the server's
	header  http.Header     // the handler's
	ctx     context.Context // the execution's
	told    context.Context // the handler's, which also ends with the request's

	mu       sync.Mutex  // held during every call of server's
	status   int         // what the handler has given WriteHeader
	settled  http.Header // a copy of header when the handler began its response; nil before that
	held     []byte
	out      bool // the response, or the connection, cannot be taken back
	hijacked bool
	closed   bool      // ServeHTTP needs the server's ResponseWriter for itself
	returned bool      // the handler has returned in time
	deadline time.Time // of writes, the server's or the handler's own; zero is none

	// For interrupt, which cannot wait for the call that it is to end. It may come late, when the
	// response is no longer the handler's.
	calling     sync.Mutex // guards what follows
	called      bool       // a call of server's is under way, for the handler
	stopped     bool       // and no other may follow
	interrupted bool       // the write deadline has been moved
}

// hold is how many bytes of a response are held at most, the size of net/http's own buffer.
const hold = 2 << 10

// farewell bounds the time for sending the rest after the handler has been stopped, to a client that may
// read nothing.
const farewell = time.Second

func newWriter(server http.ResponseWriter, r *http.Request) *writer {
	w := &writer{server: server, control: http.NewResponseController(server), request: r, header: server.Header().Clone()}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		w.deadline = time.Now().Add(s.WriteTimeout)
	}
	return w
}

// Header is never nil, as the server's is not.
func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// do calls f, unless the handler has been stopped. A call of f is a heartbeat.
func (w *writer) do(f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refused(); err != nil {
		return err
	}
	err := f()
	if err == nil {
		heartbeat.Beat(w.ctx)
	}
	return err
}

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
	if stop := (*timeout.Error)(nil); errors.As(cause, &stop) && stop.Timeout() {
		return http.ErrHandlerTimeout
	}
	return fmt.Errorf("httptimeout: the handler was stopped: %w", cause)
}

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

// settle begins the response with the current header. mu is held, as in the methods below.
func (w *writer) settle(status int) {
	if w.settled == nil {
		w.status = status
		if w.settled = w.header.Clone(); w.settled == nil {
			w.settled = make(http.Header)
		}
	}
}

// commit passes the held bytes to the server. After that nothing can be taken back.
func (w *writer) commit() error {
	if w.out {
		return nil
	}
	w.out = true
	w.settle(0)
	w.copyHeader(w.settled)
	held := w.held
	w.held = nil
	if w.status != 0 {
		w.server.WriteHeader(w.status)
		if len(held) == 0 {
			return nil
		}
	}
	_, err := w.server.Write(held) // of no bytes, too: it settles the server's header
	return err
}

// expected reports whether the client waits for permission to send its body. The server gives it when
// the body is read, unless the response has begun by then; so nothing is held.
func (w *writer) expected() bool { return w.request.Header.Get("Expect") != "" }

func (w *writer) copyHeader(from http.Header) {
	to := w.server.Header()
	maps.DeleteFunc(to, func(key string, _ []string) bool { _, ok := from[key]; return !ok })
	for key, values := range from {
		to[key] = slices.Clone(values)
	}
}

func (w *writer) WriteHeader(status int) {
	_ = w.do(func() error {
		switch {
		case w.hijacked:
			w.complain("response.WriteHeader on hijacked connection")
		case w.settled != nil:
			w.complain("superfluous response.WriteHeader call")
		case status < 100 || status > 999:
			panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as the server's does
		case status < 200 && status != http.StatusSwitchingProtocols:
			return w.pass(func() error { w.inform(status); return nil })
		default:
			w.settle(status)
			if w.expected() {
				return w.pass(w.commit)
			}
		}
		return nil
	})
}

// inform sends an informational (1xx) response.
func (w *writer) inform(status int) {
	before := w.server.Header().Clone()
	w.copyHeader(w.header)
	w.server.WriteHeader(status)
	clear(w.server.Header())
	maps.Copy(w.server.Header(), before)
}

func (w *writer) Write(p []byte) (n int, err error) {
	return transfer(w, p, w.server.Write)
}

func (w *writer) WriteString(s string) (n int, err error) {
	return transfer(w, s, func(s string) (int, error) { return io.WriteString(w.server, s) })
}

func transfer[T []byte | string](w *writer, data T, send func(T) (int, error)) (n int, err error) {
	err = w.do(func() error {
		if w.hijacked {
			if len(data) > 0 {
				w.complain("response.Write on hijacked connection")
			}
			return http.ErrHijacked
		}
		w.settle(0)
		if w.holds(len(data)) {
			w.held = append(w.held, data...)
			n = len(data)
			return nil
		}
		return w.pass(func() error {
			if err := w.commit(); err != nil {
				return err
			}
			n, err = send(data)
			return w.partly(n, err)
		})
	})
	return n, err
}

// holds reports whether size more bytes can be held. A write that the server would refuse is passed on, so
// that it refuses it now.
func (w *writer) holds(size int) bool {
	if w.out || len(w.held)+size > hold || w.expected() {
		return false
	}
	if w.status > 0 && w.status < 200 || w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return false
	}
	length := w.settled.Get("Content-Length")
	if length == "" {
		return true
	}
	n, err := strconv.ParseInt(length, 10, 64)
	return err == nil && int64(len(w.held)+size) <= n
}

// partly returns err, and beats if a transfer failed after some bytes: that is a sign of life too.
func (w *writer) partly(n int, err error) error {
	if n > 0 && err != nil {
		heartbeat.Beat(w.ctx)
	}
	return err
}

// piece is the number of bytes of a file that are sent between two heartbeats.
const piece = 1 << 20

// ReadFrom sends a file piece by piece, each as the server does it: by sendfile where that can
// be. Anything else is read here, because what waits for a source inside the server's method
// could not be taken out of it when the handler is stopped.
func (w *writer) ReadFrom(src io.Reader) (total int64, err error) {
	// The server looks through one LimitedReader to the file below it, and not through two.
	from, left := src, int64(math.MaxInt64)
	limited, ok := src.(*io.LimitedReader)
	if ok {
		from, left = limited.R, limited.N
	}
	if !regular(from) {
		return io.Copy(onlyWriter{w}, src)
	}
	for left > 0 {
		part := io.LimitedReader{R: from, N: min(left, piece)}
		want := part.N
		var n int64
		err = w.do(func() error {
			if w.hijacked {
				return http.ErrHijacked
			}
			return w.pass(func() (err error) {
				if err = w.commit(); err == nil {
					n, err = io.Copy(w.server, &part)
				}
				return w.partly(int(n), err)
			})
		})
		total += n
		if left -= n; limited != nil {
			limited.N = left
		}
		if err != nil || n < want {
			break
		}
	}
	return total, err
}

// regular reports whether reading r never blocks, because it is a regular file. It does not ask for
// *os.File, whose other methods its own WriteTo hides.
func regular(r io.Reader) bool {
	file, ok := r.(interface {
		fs.File
		syscall.Conn
	})
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// onlyWriter keeps io.Copy from calling ReadFrom.
type onlyWriter struct{ io.Writer }

func (w *writer) FlushError() error {
	return w.through(func() error {
		if !w.hijacked {
			if err := w.commit(); err != nil {
				return err
			}
		}
		return w.control.Flush()
	})
}

func (w *writer) SetReadDeadline(t time.Time) error {
	return w.through(func() error { return w.control.SetReadDeadline(t) })
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return w.through(func() error {
		err := w.control.SetWriteDeadline(t)
		if err == nil {
			w.deadline = t
		}
		return err
	})
}

func (w *writer) EnableFullDuplex() error {
	return w.through(w.control.EnableFullDuplex)
}

// through is like do, for calls that always reach the server.
func (w *writer) through(f func() error) error {
	return w.do(func() error { return w.pass(f) })
}

// CloseNotify implements http.CloseNotifier, which net/http had before it had contexts. Frameworks still
// ask for it, such as gin for streaming, and panic if it is missing.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.told, func() { gone <- true })
	return gone
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
		_ = w.control.SetWriteDeadline(time.Now().Add(farewell)) // or what follows would end with the call
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
	identity := w.settled.Get("Transfer-Encoding") == "identity"
	return w.settled.Get("Content-Length") == "" && (identity || !w.request.ProtoAtLeast(1, 1))
}

// finish completes the response when the handler has returned in time.
func (w *writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.returned = true
	switch {
	case w.hijacked:
	case w.settled == nil:
		w.copyHeader(w.header)
	default:
		_ = w.commit()
		// For the trailers. One that the handler has set and deleted again is not sent.
		maps.DeleteFunc(w.server.Header(), func(key string, _ []string) bool {
			_, before := w.settled[key]
			_, now := w.header[key]
			return before && !now
		})
		maps.Copy(w.server.Header(), w.header)
	}
}

// The optional interfaces of the server's ResponseWriter.
type (
	flusher  struct{ w *writer }
	hijacker struct{ w *writer }
	pusher   struct {
		w    *writer
		push http.Pusher
	}
)

func (f flusher) Flush() { _ = f.w.FlushError() }

func (h hijacker) Hijack() (conn net.Conn, rw *bufio.ReadWriter, err error) {
	err = h.w.through(func() error {
		if h.w.settled != nil && !h.w.hijacked {
			if err := h.w.commit(); err != nil {
				return err
			}
		}
		conn, rw, err = h.w.control.Hijack()
		if err == nil {
			h.w.out, h.w.hijacked = true, true
		}
		return err
	})
	return conn, rw, err
}

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.w.through(func() error { return p.push.Push(target, opts) })
}

// as returns w with the optional interfaces that the server's ResponseWriter has.
func (w *writer) as() http.ResponseWriter {
	f, h := flusher{w}, hijacker{w}
	push, canPush := w.server.(http.Pusher)
	p := pusher{w, push}
	_, canFlush := unwrapTo[interface{ FlushError() error }](w.server)
	if !canFlush {
		_, canFlush = unwrapTo[http.Flusher](w.server)
	}
	_, canHijack := unwrapTo[http.Hijacker](w.server)
	switch {
	case canFlush && canHijack && canPush:
		return struct {
			*writer
			flusher
			hijacker
			pusher
		}{w, f, h, p}
	case canFlush && canHijack:
		return struct {
			*writer
			flusher
			hijacker
		}{w, f, h}
	case canFlush && canPush:
		return struct {
			*writer
			flusher
			pusher
		}{w, f, p}
	case canFlush:
		return struct {
			*writer
			flusher
		}{w, f}
	case canHijack:
		return struct {
			*writer
			hijacker
		}{w, h}
	}
	return w
}

// unwrapTo finds the ResponseWriter that http.ResponseController would use.
func unwrapTo[T any](w http.ResponseWriter) (found T, ok bool) {
	for {
		if found, ok = w.(T); ok {
			return found, true
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return found, false
		}
		w = wrapper.Unwrap()
	}
}

package httptimeout

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A writer is the handler's ResponseWriter. It lets the handler through to the server's until
// the execution has been stopped.
//
// The header is a map of its own: an abandoned handler may write to it at any time, and the
// server reads its own. It takes the place of the server's when it is sent.
type writer struct {
	server  http.ResponseWriter
	control *http.ResponseController
	header  http.Header
	ctx     context.Context // the execution's

	mu       sync.Mutex // held during every call of server's
	started  bool       // some of the response is out, or the connection is the handler's
	hijacked bool

	// What interrupt asks, which cannot wait for the call that it is to end. It may come late,
	// when the response is somebody else's already.
	calling sync.Mutex // guards what follows
	called  bool       // a call of server's is under way, for the handler
	broken  bool       // and was interrupted, so that no more can follow
}

func newWriter(server http.ResponseWriter) *writer {
	return &writer{server: server, control: http.NewResponseController(server), header: server.Header().Clone()}
}

// Header is never nil, as the server's is not.
func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// do calls f, unless the handler has been stopped. What f has done is a heartbeat.
func (w *writer) do(f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return http.ErrHandlerTimeout
	}
	w.call(true)
	defer w.call(false)
	err := f()
	if err == nil {
		heartbeat.Beat(w.ctx)
	}
	return err
}

func (w *writer) call(begins bool) {
	w.calling.Lock()
	defer w.calling.Unlock()
	w.called = begins
}

// start makes the handler's header that of the response. The lock is held, as in what follows.
func (w *writer) start() {
	if !w.started {
		w.started = true
		w.copyHeader()
	}
}

func (w *writer) copyHeader() {
	to := w.server.Header()
	maps.DeleteFunc(to, func(key string, _ []string) bool { _, ok := w.header[key]; return !ok })
	for key, values := range w.header {
		to[key] = slices.Clone(values)
	}
}

func (w *writer) WriteHeader(status int) {
	_ = w.do(func() error {
		if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
			w.start()
		} else if before := w.server.Header().Clone(); !w.started { // another header follows
			w.copyHeader()
			defer func() {
				clear(w.server.Header())
				maps.Copy(w.server.Header(), before)
			}()
		}
		w.server.WriteHeader(status)
		return nil
	})
}

func (w *writer) Write(p []byte) (n int, err error) {
	err = w.do(func() error {
		w.start()
		n, err = w.server.Write(p)
		return w.partly(n, err)
	})
	return n, err
}

func (w *writer) WriteString(s string) (n int, err error) {
	err = w.do(func() error {
		w.start()
		n, err = io.WriteString(w.server, s)
		return w.partly(n, err)
	})
	return n, err
}

// partly is err. A transfer that has failed after some bytes is a sign of life all the same.
func (w *writer) partly(n int, err error) error {
	if n > 0 && err != nil {
		heartbeat.Beat(w.ctx)
	}
	return err
}

// piece is how much of a file is sent between two heartbeats.
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
		err = w.do(func() (err error) {
			w.start()
			n, err = io.Copy(w.server, &part)
			return w.partly(int(n), err)
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

// regular reports whether r is a file that never has to be waited for. That *os.File has
// methods more than this is not asked for: its own WriteTo hides them.
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
	return w.do(func() error {
		w.start()
		return w.control.Flush()
	})
}

func (w *writer) SetReadDeadline(t time.Time) error {
	return w.do(func() error { return w.control.SetReadDeadline(t) })
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return w.do(func() error { return w.control.SetWriteDeadline(t) })
}

func (w *writer) EnableFullDuplex() error {
	return w.do(func() error { return w.control.EnableFullDuplex() })
}

// interrupt ends a write that is under way when the handler is stopped, perhaps to a client
// that takes nothing: the response is cut anyway.
func (w *writer) interrupt() {
	w.calling.Lock()
	defer w.calling.Unlock()
	if w.called {
		w.broken = true
		_ = w.control.SetWriteDeadline(longAgo)
	}
}

var longAgo = time.Unix(1, 0)

// close waits for a call of the server's ResponseWriter that is under way; the execution is
// over, so no other follows. It reports whether there can be a response of somebody else's.
func (w *writer) close() (unused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calling.Lock()
	defer w.calling.Unlock()
	return !w.started && !w.broken
}

// finish completes the server's header when the handler has returned: where there is no body,
// all of it is still to be sent, and else the trailers.
func (w *writer) finish() {
	switch {
	case w.hijacked:
	case w.started:
		maps.Copy(w.server.Header(), w.header)
	default:
		w.copyHeader()
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
	err = h.w.do(func() error {
		conn, rw, err = h.w.control.Hijack()
		if err == nil {
			h.w.started, h.w.hijacked = true, true
		}
		return err
	})
	return conn, rw, err
}

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.w.do(func() error { return p.push.Push(target, opts) })
}

// as is w with the optional interfaces that the server's ResponseWriter has.
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

// unwrapTo finds what http.ResponseController would use.
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

package httptimeout

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A writer is the handler's ResponseWriter. It forwards calls to the server's ResponseWriter until the
// execution is stopped.
//
// Headers are a map of their own: an abandoned handler may write to it at any time, and the
// server reads its own.
//
// The beginning of a response is held here, up to as many bytes as net/http holds itself
// before it sends anything, so the client sees no difference until the handler is stopped, except
// that a copy of 512 bytes to 2 KiB by io.Copy has a length, where net/http would send it in chunks.
// If the handler is stopped, a response that is still here is dropped, and the 503 takes its place.
// Passing each write on at once, and flushing at the stop, was the alternative: it needs no copy,
// but tells the client "200 OK" where nothing obliged us to.
type writer struct {
	server     http.ResponseWriter
	control    *http.ResponseController
	request    *http.Request   // the server's
	header     http.Header     // the handler's
	ctx        context.Context // the execution's
	handlerCtx context.Context // the handler's context, which also ends with that of the request

	mu       sync.Mutex  // held during every call of server's
	status   int         // the argument of the handler's WriteHeader
	begun    http.Header // a copy of header when the handler began its response; nil before that
	held     []byte
	out      bool // the response, or the connection, cannot be taken back
	hijacked bool
	mistake  string    // of the call that is being made
	closed   bool      // ServeHTTP needs the server's ResponseWriter for itself
	returned bool      // the handler has returned in time
	deadline time.Time // for writes, set by the server or the handler; the zero Time means no deadline

	// For interrupt, which cannot wait for the call that it is to end. It may come late, when the
	// response is no longer the handler's.
	calling     sync.Mutex // guards what follows
	called      bool       // a call of server's is under way, for the handler
	stopped     bool       // no further call may begin
	interrupted bool       // the write deadline has been moved
}

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

// do calls f, unless the handler has been stopped. A call of f is a heartbeat. A mistake of which f tells is
// logged later: the server's log may block, and the end of the handler needs mu.
func (w *writer) do(f func() error) error {
	mistake, err := w.locked(f)
	if mistake != "" {
		w.complain(mistake)
	}
	return err
}

func (w *writer) locked(f func() error) (mistake string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refused(); err != nil {
		return "", err
	}
	w.mistake = ""
	if err = f(); err == nil {
		heartbeat.Beat(w.ctx)
	}
	return w.mistake, err
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
			w.mistake = "response.WriteHeader on hijacked connection"
		case w.begun != nil:
			w.mistake = "superfluous response.WriteHeader call"
		case status < 100 || status > 999:
			panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as the server's does
		case status < 200 && status != http.StatusSwitchingProtocols:
			return w.pass(func() error { w.inform(status); return nil })
		default:
			w.begin(status)
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
				w.mistake = "response.Write on hijacked connection"
			}
			return http.ErrHijacked
		}
		w.begin(0)
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

// regular reports whether reading r never blocks, because it is a regular file. It looks for the methods and not for
// *os.File, because the WriteTo of an os.File calls ReadFrom with another type, which embeds the file.
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
	return w.passThrough(func() error {
		if !w.hijacked {
			if err := w.commit(); err != nil {
				return err
			}
		}
		return w.control.Flush()
	})
}

func (w *writer) SetReadDeadline(t time.Time) error {
	return w.passThrough(func() error { return w.control.SetReadDeadline(t) })
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return w.passThrough(func() error {
		err := w.control.SetWriteDeadline(t)
		if err == nil {
			w.deadline = t
		}
		return err
	})
}

func (w *writer) EnableFullDuplex() error {
	return w.passThrough(w.control.EnableFullDuplex)
}

// passThrough is like do, for calls that always reach the server.
func (w *writer) passThrough(f func() error) error {
	return w.do(func() error { return w.pass(f) })
}

// CloseNotify implements http.CloseNotifier, which net/http had before it had contexts. Frameworks still
// ask for it, such as gin for streaming, and panic if it is missing.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.handlerCtx, func() { gone <- true })
	return gone
}

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

// A writer is the handler's ResponseWriter. It forwards calls to the server's ResponseWriter until the execution is
// stopped.
//
// The writer has a header of its own, because an abandoned handler may write to the header at any time, while the
// server reads its own.
//
// The writer holds the beginning of a response, up to the number of bytes that net/http holds before it sends
// anything. So a client sees no difference until the handler is stopped, except that a copy of 512 bytes to 2 KiB by
// io.Copy has a length, where net/http would send it in chunks. If the handler is stopped, a response that is still
// held is dropped, and a 503 takes its place. Rejected: to pass each write on at once and flush at the stop. That
// needs no copy, but sends a 200 where a 503 would still be possible.
type writer struct {
	server     http.ResponseWriter
	control    *http.ResponseController
	request    *http.Request   // the server's
	header     http.Header     // the header that the handler sets
	ctx        context.Context // the context of the execution
	handlerCtx context.Context // the context of the handler's request: ends with ctx, or with the context of request

	mu       sync.Mutex  // guards the fields below, down to calling; held during every call of server
	status   int         // the argument of the handler's WriteHeader; 0 before that
	begun    http.Header // a copy of header when the handler began its response; nil before that
	held     []byte      // the beginning of the body, which has not gone to the server
	out      bool        // whether the response has begun to go to the server, or the connection was hijacked
	hijacked bool
	mistake  string    // the mistake of the call in progress, or ""
	closed   bool      // whether ServeHTTP has reserved the server's ResponseWriter
	returned bool      // whether the handler has returned in time
	deadline time.Time // the write deadline that the server or the handler has set; the zero Time means none

	// These fields are for interrupt, which cannot wait for mu, because it must end the call that holds mu. interrupt
	// may run late, when the handler has already returned.
	calling     sync.Mutex // guards the fields below
	called      bool       // whether a call of server is in progress for the handler
	stopped     bool       // whether no further call may begin
	interrupted bool       // whether interrupt has set a write deadline
}

func newWriter(server http.ResponseWriter, r *http.Request) *writer {
	w := &writer{server: server, control: http.NewResponseController(server), request: r, header: server.Header().Clone()}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		w.deadline = time.Now().Add(s.WriteTimeout)
	}
	return w
}

func (w *writer) Header() http.Header { return w.header }

// do calls f with mu held, unless the handler has been stopped. If f succeeds, that is a heartbeat. A mistake that f
// sets is logged after mu is released: the server's log may block, and the end of the handler needs mu.
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

// expected reports whether the client waits for permission to send its body. The server gives permission when the
// body is read, unless the response has begun by then; so nothing is held.
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
			panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as the server's WriteHeader does
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

// partly returns err. If a transfer has failed after some bytes, it beats, because these bytes are a sign of life too.
func (w *writer) partly(n int, err error) error {
	if n > 0 && err != nil {
		heartbeat.Beat(w.ctx)
	}
	return err
}

// piece is the number of bytes of a file that are sent between two heartbeats.
const piece = 1 << 20

// ReadFrom sends a regular file piece by piece with the server's ReadFrom, which may use sendfile. Any other source
// is read in this package, because a stop could not end a call of the server's ReadFrom that waits for the source.
func (w *writer) ReadFrom(src io.Reader) (total int64, err error) {
	// The server finds the file below one LimitedReader, but not below two.
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

// regular reports whether reading r never blocks, because r is a regular file. It checks for methods and not for
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

// onlyWriter hides ReadFrom from io.Copy.
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

// passThrough is do for a call that always reaches the server.
func (w *writer) passThrough(f func() error) error {
	return w.do(func() error { return w.pass(f) })
}

// CloseNotify implements http.CloseNotifier, which is older than contexts in net/http. Some frameworks still require
// it, such as gin for streaming, and panic if it is missing.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.handlerCtx, func() { gone <- true })
	return gone
}

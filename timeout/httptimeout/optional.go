package httptimeout

import (
	"bufio"
	"net"
	"net/http"
)

// These types implement the optional interfaces of the server's ResponseWriter.
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
	err = h.w.passThrough(func() error {
		if h.w.begun != nil && !h.w.hijacked {
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
	return p.w.passThrough(func() error { return p.push.Push(target, opts) })
}

// withOptional returns w with those optional interfaces that the server's ResponseWriter has.
func (w *writer) withOptional() http.ResponseWriter {
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

// unwrapTo returns the ResponseWriter of type T that http.ResponseController would use: w, or the first that Unwrap
// leads to. ok is false if there is none.
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

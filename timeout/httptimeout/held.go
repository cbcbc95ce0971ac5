package httptimeout

import (
	"maps"
	"net/http"
	"strconv"
)

// hold is the greatest number of bytes of a response that are held: the size of net/http's own buffer.
const hold = 2 << 10

// begin begins the response with the current header, unless it has begun. The caller holds mu.
func (w *writer) begin(status int) {
	if w.begun == nil {
		w.status = status
		w.begun = w.header.Clone()
	}
}

// commit sends the header and the held bytes to the server's ResponseWriter, after which the response cannot be
// replaced. The caller holds mu.
func (w *writer) commit() error {
	if w.out {
		return nil
	}
	w.out = true
	w.begin(0)
	w.copyHeader(w.begun)
	held := w.held
	w.held = nil
	if w.status != 0 {
		w.server.WriteHeader(w.status)
		if len(held) == 0 {
			return nil
		}
	}
	_, err := w.server.Write(held) // even if there are none: this fixes the server's header
	return err
}

// holds reports whether size more bytes are to be held. It returns false for a write that the server would refuse, so
// that the server refuses it at once. The caller holds mu.
func (w *writer) holds(size int) bool {
	if w.out || len(w.held)+size > hold || w.expected() {
		return false
	}
	if w.status > 0 && w.status < 200 || w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return false
	}
	length := w.begun.Get("Content-Length")
	if length == "" {
		return true
	}
	n, err := strconv.ParseInt(length, 10, 64)
	return err == nil && int64(len(w.held)+size) <= n
}

// finish sends what is held of the response after the handler has returned in time.
func (w *writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.returned = true
	switch {
	case w.hijacked:
	case w.begun == nil:
		w.copyHeader(w.header)
	default:
		_ = w.commit()
		// Copies the trailers. Keys that the handler has set and deleted again are not sent.
		maps.DeleteFunc(w.server.Header(), func(key string, _ []string) bool {
			_, before := w.begun[key]
			_, now := w.header[key]
			return before && !now
		})
		maps.Copy(w.server.Header(), w.header)
	}
}

package stream

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// KeepAlive returns a handler that calls h and sends comments on its quiet notification streams,
// one after each interval in which nothing else was sent. Readers of events ignore comments, but
// the comments keep a client with an idle limit, such as [Notifications], and a proxy from taking
// the stream for a dead one. With an MCP SDK, KeepAlive must be the outermost handler:
//
//	http.ListenAndServe(addr, stream.KeepAlive(mcpsdk.WrapHTTP(handler), 0))
//
// A notification stream is a response of type text/event-stream to a GET, or to the
// subscriptions/listen of an MCP client. Comments begin when the header of the response has been
// sent, and come only between events. Other responses are not changed, because on the stream of a
// call a comment would hide a silent tool. A client that reads nothing blocks a comment as it would
// block an event; the server's WriteTimeout applies to both. The handler waits for h, and at its end for
// a comment that is being written, since the server then takes its ResponseWriter back. A comment whose
// writing panics is the last.
//
// If every is 0, the interval is 15 s. If it is negative, no comments are sent. The shortest is 1 ms. KeepAlive panics with a
// [*timeout.ConfigError] if h is nil.
func KeepAlive(h http.Handler, every time.Duration) http.Handler {
	if h == nil {
		panic(&timeout.ConfigError{Key: "handler", Value: "nil", Accepted: "an http.Handler"})
	}
	if every == 0 {
		every = 15 * time.Second
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flusher, ok := w.(http.Flusher)
		notifies := r.Method == http.MethodGet || r.Method == http.MethodPost && r.Header.Get("Mcp-Method") == "subscriptions/listen"
		if every < 0 || !ok || !notifies {
			h.ServeHTTP(w, r)
			return
		}
		k := &keeper{ResponseWriter: w, flusher: flusher, every: max(every, time.Millisecond)}
		defer k.end()
		h.ServeHTTP(k, r)
	})
}

// A keeper is the response writer of a handler that may answer with an event stream.
type keeper struct {
	http.ResponseWriter
	flusher http.Flusher
	every   time.Duration

	mu     sync.Mutex // held during every call of the ResponseWriter that sends something
	begun  bool       // the header has been sent
	ended  bool       // the handler has returned
	tail   []byte     // the last bytes that were written, as many as tell whether an event has ended
	last   time.Time  // of the last write or flush
	ticker *time.Timer
}

func (k *keeper) WriteHeader(status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ResponseWriter.WriteHeader(status)
	if status >= 200 {
		k.begin(status)
	}
}

// begin starts the comments if this is an event stream. mu is held, as in the functions below.
func (k *keeper) begin(status int) {
	if k.begun {
		return
	}
	k.begun = true
	if status == http.StatusOK && isEventType(k.Header().Get("Content-Type")) && k.Header().Get("Content-Encoding") == "" {
		k.last = time.Now()
		k.ticker = time.AfterFunc(k.every, k.tick)
	}
}

func (k *keeper) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(http.StatusOK)
	n, err := k.ResponseWriter.Write(p)
	if k.ticker != nil {
		k.last = time.Now()
		k.tail = append(k.tail, p[:n]...)
		k.tail = append(k.tail[:0], k.tail[max(len(k.tail)-4, 0):]...)
	}
	return n, err
}

// Flush sends what has been written, and the header.
func (k *keeper) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(http.StatusOK)
	k.flusher.Flush()
}

// Unwrap returns the ResponseWriter for http.ResponseController.
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

const keepAlive = ": keep-alive\n\n"

// tick sends a comment if one is due. It is called by the timer.
func (k *keeper) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { _ = recover() }() // on this goroutine it would end the process
	if k.ended {
		return
	}
	wait := k.every - time.Since(k.last)
	if wait <= 0 {
		wait = k.every
		if k.betweenEvents() {
			if _, err := k.ResponseWriter.Write([]byte(keepAlive)); err != nil {
				return // the handler learns of it by its own writes, or by the end of its context
			}
			k.flusher.Flush()
			k.last = time.Now()
		}
	}
	k.ticker.Reset(wait)
}

func (k *keeper) betweenEvents() bool {
	return len(k.tail) == 0 || bytes.HasSuffix(k.tail, []byte("\n\n")) || bytes.HasSuffix(k.tail, []byte("\r\n\r\n")) ||
		bytes.HasSuffix(k.tail, []byte("\r\r"))
}

// end waits for a comment that is being written: the server takes its ResponseWriter back.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.ticker != nil {
		k.ticker.Stop()
	}
}

package stream

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// KeepAlive returns a handler that calls h and sends comments on quiet notification streams, one after each interval
// in which nothing else was sent. Parsers of events ignore comments, but comments show a client with an idle limit,
// such as [Notifications], and a proxy that the connection is alive. With an MCP SDK, KeepAlive must be the outermost
// handler:
//
//	http.ListenAndServe(addr, stream.KeepAlive(mcpsdk.WrapHTTP(handler), 0))
//
// A notification stream is a response of status 200 and type text/event-stream, without a Content-Encoding, to a GET
// or to the subscriptions/listen of an MCP client. Comments begin when the header of the response has been sent, and
// come only between events. Other responses are not changed, because on the stream of a call a comment would hide a
// silent tool. A client that reads nothing blocks a comment as it would block an event; the server's WriteTimeout
// applies to both. The handler waits for h, and before it returns also for a comment that is being written, because
// the ResponseWriter must not be used after that. If writing a comment panics, no more comments are sent.
//
// The interval is every, but at least 1 ms. If every is 0, the interval is 15 s. If every is negative, or the
// ResponseWriter is no http.Flusher, no comments are sent. KeepAlive panics with a [*timeout.ConfigError] if h is nil.
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

// A keeper is the ResponseWriter of a handler whose response may be a notification stream.
type keeper struct {
	http.ResponseWriter
	flusher http.Flusher
	every   time.Duration

	mu     sync.Mutex // guards the fields below; held during every call of the ResponseWriter that sends something
	begun  bool       // whether the header has been sent
	ended  bool       // whether the handler has returned
	tail   []byte     // the last 4 bytes that were written, by which betweenEvents finds the end of an event
	last   time.Time  // the time of the last write, by the handler or of a comment
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

// begin starts the comments if the response is a notification stream. The caller holds mu.
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

// Flush sends the header and the bytes that were written so far.
func (k *keeper) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(http.StatusOK)
	k.flusher.Flush()
}

// Unwrap returns the underlying ResponseWriter, for http.ResponseController.
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

const keepAlive = ": keep-alive\n\n"

// tick sends a comment if an interval has passed without a write and the last event is complete. The timer calls it.
func (k *keeper) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { _ = recover() }() // a panic on the timer's goroutine would end the process
	if k.ended {
		return
	}
	wait := k.every - time.Since(k.last)
	if wait <= 0 {
		wait = k.every
		if k.betweenEvents() {
			if _, err := k.ResponseWriter.Write([]byte(keepAlive)); err != nil {
				return // the handler gets the error from its own writes, or its context ends
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

// end stops the comments. It waits for a comment that is being written, because the ResponseWriter must not be used
// after the handler has returned.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.ticker != nil {
		k.ticker.Stop()
	}
}

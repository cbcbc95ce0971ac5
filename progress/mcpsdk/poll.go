package mcpsdk

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

// Poll wraps the SDK's handler for Streamable HTTP, inside [WrapHTTP]. It closes the stream of a call after a time, and
// lets the client fetch the rest: the client sends a GET 1 s later, with the id of the last event that it has received.
// Choose a time below the limit of a proxy for one response, such as 50 s for a limit of 60 s. The tool is not
// affected.
//
//	h := mcpsdk.WrapHTTP(mcpsdk.Poll(mcp.NewStreamableHTTPHandler(getServer, options), 50*time.Second))
//
// Poll needs an EventStore in mcp.StreamableHTTPOptions, sessions, and protocol 2025-11-25; without these no stream is
// closed. A stream is closed only after an event with an id, which the SDK sends at the beginning of a call and with
// each progress notification, because clients give up a stream that is closed again and again without a new event, the
// SDK's client after 5 times. So the stream of a call without a progress token is closed only once.
//
// If after is 0 or less, Poll returns h, and no stream is closed.
func Poll(h http.Handler, after time.Duration) http.Handler {
	if after <= 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flusher, ok := w.(http.Flusher)
		// A GET without an event id opens the standalone stream of the session, which belongs to no call.
		if !ok || r.Method != http.MethodPost && (r.Method != http.MethodGet || r.Header.Get("Last-Event-ID") == "") {
			h.ServeHTTP(w, r)
			return
		}
		ctx, leave := context.WithCancel(r.Context())
		p := &poller{ResponseWriter: w, flusher: flusher, leave: leave}
		p.timer = time.AfterFunc(after, p.expire)
		defer p.end()
		h.ServeHTTP(p, r.WithContext(ctx))
	})
}

// A poller is the response to one request. It ends the response when its time is over, by cancelling the context of the
// request: the SDK then assumes that the client has disconnected, and stores further events for it.
type poller struct {
	http.ResponseWriter
	flusher http.Flusher
	leave   context.CancelFunc
	timer   *time.Timer

	mu      sync.Mutex // guards the fields below; held during every call of the ResponseWriter that sends something
	id      bool       // an event with an id has been written
	whole   bool       // the last write was the end of an event
	expired bool       // the time is over
	closed  bool       // the stream has been closed, or the handler has returned
}

func (p *poller) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.ResponseWriter.Write(b)
	p.id = p.id || bytes.HasPrefix(b, []byte("id:")) || bytes.Contains(b, []byte("\nid:"))
	p.whole = bytes.HasSuffix(b, []byte("\n\n"))
	p.close()
	return n, err
}

// Flush implements http.Flusher.
func (p *poller) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flusher.Flush()
}

// Unwrap returns the underlying ResponseWriter for http.ResponseController.
func (p *poller) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *poller) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expired = true
	p.close()
}

// close ends the response if its time is over and the client can fetch the rest: an event with an id has been written,
// and no event is incomplete. The caller holds mu.
func (p *poller) close() {
	if p.closed || !p.expired || !p.id || !p.whole {
		return
	}
	p.closed = true
	_, _ = p.ResponseWriter.Write([]byte("event: close\nretry: 1000\n\n"))
	p.flusher.Flush()
	p.leave()
}

// end stops the timer and later writes of close. It is called when the handler has returned.
func (p *poller) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.timer.Stop()
	p.leave()
}

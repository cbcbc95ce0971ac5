package mcpgo

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// WrapHTTP wraps a server.StreamableHTTPServer, and does four things that [Install]
// cannot do alone:
//
//   - A call that its client cancels with a message is aborted with a [*toolcall.CancelledError],
//     which has the client's reason, and a call whose connection ends with
//     [toolcall.ErrDisconnected]. A client that has a session may close the connection first: it
//     has 100 ms to send the message.
//   - The progress of a call is sent on the stream of that call, before its result or not at all. In
//     a session mcp-go sends it on the stream of any request that is
//     open, or on the standalone stream, and drops it if 100 notifications wait.
//   - The question of an [Elicit] is cancelled at the client when the tool no longer waits for the
//     answer.
//   - A client that ends its session with DELETE aborts its calls, including those whose requests
//     are still open. A task runs on.
//
// WrapHTTP also tells a [toolcall.Drain] when an answer has been written, and enables Tasks of [Options].
//
//	http.ListenAndServe(addr, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
//
// Put it directly around mcp-go's handler: headers that a handler in between sets after the body has
// been read do not reach a client that gets progress. With server.WithEventStore, mcp-go sends the
// progress itself and records it, beginning with the first recorded event that WrapHTTP has seen.
// Around a server.SSEServer, WrapHTTP only serves tasks. Other handlers are not changed. A client
// may take a quiet notification stream for a dead one; see stream.KeepAlive, which goes around
// WrapHTTP.
func WrapHTTP(h http.Handler) http.Handler {
	recorded, streams, requests := new(atomic.Bool), new(streams), new(adapter.Sessions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flusher, ok := w.(http.Flusher)
		if ok && r.Method == http.MethodGet {
			defer streams.begin(r.Header.Get(mcp.HeaderSessionID))()
			h.ServeHTTP(&eventStream{w, flusher}, r)
			return
		}
		if r.Method == http.MethodDelete {
			r = r.WithContext(context.WithValue(r.Context(), endKey{}, true))
		}
		if !ok || r.Method != http.MethodPost || r.Body == nil {
			h.ServeHTTP(w, r) // mcp-go does not stream either
			return
		}
		s := &stream{ResponseWriter: w, flusher: flusher, header: w.Header().Clone(), recorded: recorded}
		s.wire.frame, s.wire.answered, s.wire.header = s.frame, s.answered, r.Header
		s.wire.streams, s.wire.requests = streams, requests
		session := r.Header.Get(mcp.HeaderSessionID)
		ctx, release := untilLost(r.Context(), session != "")
		defer release()
		r = r.WithContext(context.WithValue(ctx, wireKey{}, &s.wire))
		r.Body = &body{s, adapter.CancelledBody(r.Body, func(id any, cause error) {
			s.cancels = true
			if session != "" {
				requests.Abort(sessionRequest{session, textOf(id)}, cause)
			}
		})}
		defer s.end()
		h.ServeHTTP(s, r)
	})
}

// reasonWait is how long a client that has hung up has to say why.
const reasonWait = 100 * time.Millisecond

func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// untilLost returns a context that ends with that of a request, and with [toolcall.ErrDisconnected] as the
// cause where net/http gives none. A client with a session may have hung up to cancel the call, and is about to
// say why, as those of both SDKs do: it has a moment for that.
func untilLost(request context.Context, session bool) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(request))
	unhook := context.AfterFunc(request, func() {
		cause := context.Cause(request)
		if cause == context.Canceled {
			cause = toolcall.ErrDisconnected
			if session {
				waitFor(ctx, reasonWait)
			}
		}
		cancel(cause)
	})
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// A stream is the response to one POST.
type stream struct {
	http.ResponseWriter
	wire
	flusher http.Flusher

	// The handler has its own header, because its goroutines may write to it at any time, without our lock.
	header http.Header
	// read is a copy of header from when the body had been read. Until then only one goroutine uses header.
	read http.Header

	begun, events, over bool         // written to; as a stream of events; the handler has returned
	cancels, refused    bool         // the request is a notifications/cancelled; mcp-go has refused it
	recorded            *atomic.Bool // the server records its events

	left  bool     // by the handler; under state
	leave []func() // to be called then
}

func (s *stream) Header() http.Header { return s.header }

// Unwrap returns the ResponseWriter for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.wire.statusOf(); answer != 0 && status != http.StatusAccepted {
		status = answer // mcp-go's is that of the stand-in
	}
	if s.cancels && status == http.StatusBadRequest {
		// mcp-go wants a version in _meta from 2026-07-28 on. The official SDK's client sends none, and
		// takes the refusal for the end of its connection: no other call could be made.
		s.refused, status = true, http.StatusAccepted
		s.begin(status, http.Header{})
		return
	}
	s.begin(status, s.header)
}

// begin writes the header of the response, once. The caller holds the lock.
func (s *stream) begin(status int, header http.Header) {
	if s.begun {
		return // by us, and mcp-go's header says the same
	}
	real := s.ResponseWriter.Header()
	clear(real)
	maps.Copy(real, header)
	s.begun = status >= 200 || status == http.StatusSwitchingProtocols
	s.events = strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
	s.ResponseWriter.WriteHeader(status)
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused {
		return len(p), nil
	}
	s.begin(http.StatusOK, s.header)
	n, err := writeExchanged(s.ResponseWriter, p)
	if s.events {
		if strings.HasPrefix(string(p[:min(len(p), 3)]), "id:") {
			s.recorded.Store(true) // the next write belongs to this line
		}
		s.observe(p)
	}
	return n, err
}

func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK, s.header)
	s.flusher.Flush()
}

// frame writes a message of this package as an event. The caller holds the lock.
func (s *stream) frame(message []byte) error {
	if s.over || s.recorded.Load() || s.begun && !s.events || s.read == nil {
		return errNoWire
	}
	if !s.begun {
		s.read.Set("Content-Type", "text/event-stream")
		s.read.Set("Cache-Control", "no-cache")
		s.read.Set("Connection", "keep-alive")
		s.begin(http.StatusOK, s.read)
	}
	event := make([]byte, 0, len(message)+32)
	event = append(event, "event: message\ndata: "...)
	event = append(event, message...)
	event = append(event, "\n\n"...)
	if _, err := s.ResponseWriter.Write(event); err != nil {
		return err
	}
	s.flusher.Flush()
	return nil
}

// answered makes leave be called when the handler has returned, which is the only sign that the answer has been
// written.
func (s *stream) answered(leave func()) {
	s.state.Lock()
	defer s.state.Unlock()
	if s.left {
		leave()
		return
	}
	s.leave = append(s.leave, leave)
}

// end ends the stream: the handler has returned.
func (s *stream) end() {
	s.mu.Lock()
	if s.over = true; !s.begun {
		maps.Copy(s.ResponseWriter.Header(), s.header)
	}
	s.mu.Unlock()
	s.state.Lock()
	defer s.state.Unlock()
	s.left = true
	for _, leave := range s.leave {
		leave()
	}
}

// A body tells its stream when it has been read.
type body struct {
	stream *stream
	io.ReadCloser
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.stream.mu.Lock()
		defer b.stream.mu.Unlock()
		if b.stream.read == nil {
			b.stream.read = b.stream.header.Clone()
		}
	}
	return n, err
}

// An eventStream is the response to a GET: the stream on which SSE sends answers, or the replay of recorded answers.
type eventStream struct {
	http.ResponseWriter
	flusher http.Flusher
}

func (e *eventStream) Write(p []byte) (int, error) { return writeExchanged(e.ResponseWriter, p) }
func (e *eventStream) Flush()                      { e.flusher.Flush() }
func (e *eventStream) Unwrap() http.ResponseWriter { return e.ResponseWriter }

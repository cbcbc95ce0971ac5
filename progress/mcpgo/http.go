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
//     which has the client's reason. A call whose connection ends is aborted with
//     [toolcall.ErrDisconnected]; if the client has a session, the abort waits 100 ms for the message,
//     because a client may close the connection first.
//   - The progress of a call is sent on the stream of that call, before its result or not at all.
//     Without WrapHTTP, mcp-go sends the progress in a session on the stream of any open request, or
//     on the standalone stream, and drops it if 100 notifications wait.
//   - The question of an [Elicit] is cancelled at the client when the tool no longer waits for the
//     answer.
//   - A client that ends its session with DELETE aborts its calls, including those whose requests
//     are still open. A task runs on.
//
// WrapHTTP also reports to a [toolcall.Drain] when an answer has been written, and enables Tasks of [Options].
//
//	http.ListenAndServe(addr, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
//
// Put it directly around mcp-go's handler: headers that a handler in between sets after the body has been read do not
// reach a client that gets progress. With server.WithEventStore, mcp-go sends the progress itself and records it,
// beginning with the first recorded event that WrapHTTP has seen. Around a server.SSEServer, WrapHTTP only enables
// tasks. Of any other handler, the POST requests lose their deadline. A client may give up a stream of notifications on
// which nothing is sent; stream.KeepAlive, around WrapHTTP, prevents that.
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
		r.Body = &body{ReadCloser: r.Body, stream: s, session: session}
		defer s.end()
		h.ServeHTTP(s, r)
	})
}

// reasonWait is how long untilLost waits for the cancellation message of a client that has closed its connection.
const reasonWait = 100 * time.Millisecond

// untilLost returns a context that ends with the context of a request. If net/http gives no cause, the cause is
// [toolcall.ErrDisconnected] and, in a session, the end comes reasonWait later: the clients of both SDKs close the
// connection to cancel a call before they send the message with the reason.
func untilLost(request context.Context, session bool) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(request))
	unhook := context.AfterFunc(request, func() {
		cause := context.Cause(request)
		if cause == context.Canceled {
			cause = toolcall.ErrDisconnected
			if session {
				_ = pause(ctx, reasonWait)
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

	// header is the header that the handler sees. The handler's goroutines may write to it at any time, without mu.
	header http.Header
	// read is a copy of header, made when the body had been read; nil before. Until then only one goroutine uses
	// header.
	read http.Header

	begun, events, over bool         // the header was written; the body is a stream of events; the handler has returned
	cancels, refused    bool         // the request is a notifications/cancelled; mcp-go has refused it
	recorded            *atomic.Bool // the server has an event store; shared by all streams

	left  bool     // the handler has returned; guarded by state
	leave []func() // called when the handler returns; guarded by state
}

func (s *stream) Header() http.Header { return s.header }

// Unwrap returns the underlying ResponseWriter for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.wire.statusOf(); answer != 0 && status != http.StatusAccepted {
		status = answer // mcp-go has chosen its status for the stand-in
	}
	if s.cancels && status == http.StatusBadRequest {
		// From 2026-07-28 on mcp-go requires a version in _meta. The official SDK's client sends none with a
		// cancellation, and would treat the refusal as the end of its connection.
		s.refused, status = true, http.StatusAccepted
		s.begin(status, http.Header{})
		return
	}
	s.begin(status, s.header)
}

// begin writes the header of the response, unless it has been written. The caller holds mu.
func (s *stream) begin(status int, header http.Header) {
	if s.begun {
		return // frame may have written the same header
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
			s.recorded.Store(true) // before the next write of mcp-go, which has the rest of the event
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

// frame writes a message of this package as an event. It returns errNoWire if the handler has returned, the server
// records events, the response is not a stream of events, or the body has not been read. The caller holds mu.
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

// answered registers leave to be called when the handler returns, which is the only sign that the answer has been
// written. If the handler has already returned, answered calls leave at once.
func (s *stream) answered(leave func()) {
	s.state.Lock()
	defer s.state.Unlock()
	if s.left {
		leave()
		return
	}
	s.leave = append(s.leave, leave)
}

// end is deferred to the return of the handler. It stops later writes of frame, and calls the functions registered by
// answered.
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

// A body is the body of a request. When its end has been read, it copies the header of its stream and, if it is a
// notifications/cancelled, aborts the call.
type body struct {
	io.ReadCloser
	stream  *stream
	session string
	read    []byte
}

// maxCancel is the largest body, in bytes, that is examined for a cancellation; see [adapter.Cancelled].
const maxCancel = 64 << 10

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if len(b.read) <= maxCancel {
		b.read = append(b.read, p[:max(n, 0)]...)
	}
	if err == io.EOF {
		id, cause, cancels := adapter.Cancelled(b.read)
		if b.stream.cancels = cancels; cancels && b.session != "" {
			b.stream.wire.requests.Abort(b.session, textOf(id), cause)
		}
		b.stream.mu.Lock()
		defer b.stream.mu.Unlock()
		if b.stream.read == nil {
			b.stream.read = b.stream.header.Clone()
		}
	}
	return n, err
}

// An eventStream is the response to a GET, in which Write replaces stand-ins: the stream of answers of SSE, or the
// recorded answers that Streamable HTTP sends again.
type eventStream struct {
	http.ResponseWriter
	flusher http.Flusher
}

func (e *eventStream) Write(p []byte) (int, error) { return writeExchanged(e.ResponseWriter, p) }
func (e *eventStream) Flush()                      { e.flusher.Flush() }
func (e *eventStream) Unwrap() http.ResponseWriter { return e.ResponseWriter }

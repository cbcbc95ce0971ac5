package front

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// answer forwards the request m to the server, and sends the messages about the request on the response rw, until it
// has sent the answer, or the client disconnects or cancels the request. It calls passed when the request has been forwarded.
func (s *session) answer(rw http.ResponseWriter, r *http.Request, m *jsonrpc.Message, passed func()) {
	if s.id == "" {
		m = s.rename(m)
	}
	st := &downstream{Mailbox: jsonrpc.NewMailbox(), call: m.Method == "tools/call", cut: func() {
		_ = http.NewResponseController(rw).SetWriteDeadline(time.Now())
	}}
	key := string(m.ID)
	s.streams.Lock()
	if s.open[key] != nil {
		s.streams.Unlock()
		refuse(rw, http.StatusBadRequest, m.ID, jsonrpc.InvalidRequest, "the id is in use by another request")
		return
	}
	s.open[key] = st
	s.audience.join(st)
	s.streams.Unlock()
	defer func() {
		s.streams.Lock()
		delete(s.open, key)
		delete(s.aliases, key)
		s.used = time.Now()
		s.streams.Unlock()
		s.audience.leave(st)
		s.read.Broadcast()
	}()

	// The read deadline for the request would otherwise cancel r.Context during a long call.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	events := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if events {
		beginEvents(rw)
	}
	s.take(m)
	passed()
	gone := func() {
		if s.id == "" {
			s.take(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": m.ID, "reason": "the client has disconnected"}))
		} // in a session, a disconnected client cancels requests with a message
	}
	for {
		select {
		case <-st.More:
			out := st.Next()
			if out == nil {
				if st.IsGone() { // the client has cancelled the request, or was cut off; see audience.bound
					if !events {
						rw.WriteHeader(http.StatusAccepted)
					}
					gone()
					return
				}
				continue
			}
			last := out.IsResponse() && string(out.ID) == key
			out = s.restore(out)
			switch {
			case events:
				if st.writeEvent(rw, out) != nil && !last {
					gone()
					return
				}
			case last:
				rw.Header().Set("Content-Type", "application/json")
				if limitWrite(rw); !st.IsGone() {
					_, _ = rw.Write(out.Raw)
				}
			}
			if last {
				return
			}
			st.Sent()
			s.read.Broadcast()
		case <-r.Context().Done():
			gone()
			return
		}
	}
}

// listen serves the notification stream of the session, for messages that belong to no request. Messages that have not
// been sent when the client disconnects stay queued for the next stream.
func (s *session) listen(rw http.ResponseWriter, r *http.Request) {
	st := &downstream{Mailbox: s.pending}
	s.streams.Lock()
	if s.get != nil {
		s.streams.Unlock()
		refuse(rw, http.StatusConflict, nil, jsonrpc.InvalidRequest, "the session has a notification stream already")
		return
	}
	s.get = st
	s.streams.Unlock()
	defer func() {
		st.Sent() // the last message, even if the write failed
		s.streams.Lock()
		s.get = nil
		s.used = time.Now()
		s.streams.Unlock()
	}()
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	beginEvents(rw)
	ping := time.NewTicker(streamPing)
	defer ping.Stop()
	for {
		select {
		case <-st.More:
			if m := st.Next(); m != nil && st.writeEvent(rw, m) != nil {
				if m.IsRequest() { // the server needs an answer
					s.take(jsonrpc.Failure(m.ID, "the client has gone"))
				}
				return
			}
			st.Sent()
		case <-ping.C: // detects that the client has disconnected
			limitWrite(rw)
			if _, err := io.WriteString(rw, ": \n\n"); err != nil {
				return
			}
			flush(rw)
		case <-s.over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// writeLimit is how long a client may take to accept a message.
const writeLimit = time.Minute

func beginEvents(rw http.ResponseWriter) {
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Cache-Control", "no-cache")
	flush(rw)
}

func limitWrite(rw http.ResponseWriter) {
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(writeLimit))
}

// writeEvent writes a message as an event. It does not copy the message, which may be large.
func (st *downstream) writeEvent(rw http.ResponseWriter, m *jsonrpc.Message) error {
	if limitWrite(rw); st.IsGone() { // checked after limitWrite, which may have undone the deadline that cut sets
		return net.ErrClosed
	}
	for _, part := range [][]byte{[]byte("event: message\ndata: "), m.Raw, []byte("\n\n")} {
		if _, err := rw.Write(part); err != nil {
			return err
		}
	}
	return http.NewResponseController(rw).Flush()
}

func flush(rw http.ResponseWriter) { _ = http.NewResponseController(rw).Flush() }

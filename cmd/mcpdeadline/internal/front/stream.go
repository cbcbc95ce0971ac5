package front

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// answer passes on a request, and sends the host everything about it until it is answered. It calls passed when
// the request has been passed on.
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

	// The deadline for reading the request would end the answer too.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	events := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if events {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.Header().Set("Cache-Control", "no-cache")
		rw.WriteHeader(http.StatusOK)
		flush(rw)
	}
	s.take(m)
	passed()
	gone := func() {
		if s.id == "" {
			s.take(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": m.ID, "reason": "the client has disconnected"}))
		} // the client of a session may come back, and cancels with a message
	}
	for {
		select {
		case <-st.More:
			out := st.Next()
			if out == nil {
				if st.IsGone() { // it was cut off
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

// listen serves the notification stream, for messages that belong to no request. What is not sent when the client goes
// waits for the next stream.
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
		st.Sent() // whether or not the client got the last one
		s.streams.Lock()
		s.get = nil
		s.used = time.Now()
		s.streams.Unlock()
	}()
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Cache-Control", "no-cache")
	rw.WriteHeader(http.StatusOK)
	flush(rw)
	ping := time.NewTicker(streamPing)
	defer ping.Stop()
	for {
		select {
		case <-st.More:
			if m := st.Next(); m != nil && st.writeEvent(rw, m) != nil {
				if m.IsRequest() { // the server waits for the answer
					s.take(jsonrpc.Failure(m.ID, "the client has gone"))
				}
				return
			}
			st.Sent()
		case <-ping.C: // otherwise a host that has gone would go unnoticed
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

// writeLimit is how long a client may take to read a message.
const writeLimit = time.Minute

func limitWrite(rw http.ResponseWriter) {
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(writeLimit))
}

// writeEvent writes a message, which may be large, without a copy.
func (st *downstream) writeEvent(rw http.ResponseWriter, m *jsonrpc.Message) error {
	if limitWrite(rw); st.IsGone() { // after the new limit: cut sets another one
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

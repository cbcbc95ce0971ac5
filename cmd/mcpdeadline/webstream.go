package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Bounds of what waits for HTTP clients that do not read, in bytes.
const (
	maxUnsent  = 1 << 20 // on a stream of notifications, or while there is none: what comes then is dropped
	maxAnswers = 4 << 20 // on one response: progress and the like that comes then is dropped
)

// A webSession is a session whose messages are sent on HTTP responses.
type webSession struct {
	*calls.Session
	id   string // "" for the session that requests which stand alone share
	stop context.CancelFunc
	over chan struct{}

	audience *audience  // of all sessions
	input    sync.Mutex // messages of the host are handled one at a time

	streams sync.Mutex
	open    map[string]*downstream // responses to requests, by id
	get     *downstream            // notification stream, for all other messages
	pending *jsonrpc.Mailbox       // of messages for a notification stream that is not there
	read    sync.Cond              // a client has read, or has gone
	eased   bool                   // nobody waits for clients any more
	used    time.Time
	aliases map[string]alias // of requests that stand alone, by the quoted id of the proxy
	names   int
}

// A downstream is a response on which messages are sent.
type downstream struct {
	*jsonrpc.Mailbox
	call bool
	cut  func() // ends a write that waits for the client
}

// An audience is the responses whose clients may not read.
type audience struct {
	unread atomic.Int64 // bytes
	most   int64        // of them; then the client that has read nothing for longest is cut off

	mu        sync.Mutex
	listeners map[*downstream]bool
}

func (a *audience) join(st *downstream) {
	st.All = &a.unread
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		a.listeners = make(map[*downstream]bool)
	}
	a.listeners[st] = true
}

// leave closes a response.
func (a *audience) leave(st *downstream) {
	st.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.listeners, st)
}

// bound cuts off those that have read nothing for longest, while too much waits. It reports whether there were any.
func (a *audience) bound() (cut bool) {
	for a.unread.Load() > a.most {
		a.mu.Lock()
		var victim *downstream
		var since time.Time
		for st := range a.listeners {
			if s, any := st.Waits(); any && (victim == nil || s.Before(since)) {
				victim, since = st, s
			}
		}
		a.mu.Unlock()
		if victim == nil {
			break
		}
		victim.Close()
		victim.cut()
		cut = true
	}
	return cut
}

// awaitClients waits until the clients of a session have read most of what its requests have been answered. The
// clients of requests that stand alone do not hold up each other.
func (ws *webSession) awaitClients() {
	ws.streams.Lock()
	defer ws.streams.Unlock()
	for ws.id != "" && !ws.eased {
		size := 0
		for _, st := range ws.open {
			size += st.Bytes()
		}
		if size <= jsonrpc.QueueOf(ws.Max) {
			return
		}
		ws.read.Wait()
	}
}

// standing returns when the session was used last, whether a client listens, and whether anything is under way.
func (ws *webSession) standing() (last time.Time, listens, busy bool) {
	busy = ws.Busy()
	ws.streams.Lock()
	defer ws.streams.Unlock()
	return ws.used, ws.get != nil, busy || len(ws.open) > 0
}

// ease lets the server go on whether or not clients read.
func (ws *webSession) ease() {
	ws.streams.Lock()
	ws.eased = true
	ws.streams.Unlock()
	ws.read.Broadcast()
}

// take handles a message of the host.
func (ws *webSession) take(m *jsonrpc.Message) {
	ws.streams.Lock()
	ws.used = time.Now()
	ws.streams.Unlock()
	ws.input.Lock()
	defer ws.input.Unlock()
	ws.FromHost(context.Background(), m)
}

// answer passes on a request, and sends the host everything about it until it is answered. It calls passed when
// the request has been passed on.
func (ws *webSession) answer(rw http.ResponseWriter, r *http.Request, m *jsonrpc.Message, passed func()) {
	if ws.id == "" {
		m = ws.rename(m)
	}
	st := &downstream{Mailbox: jsonrpc.NewMailbox(), call: m.Method == "tools/call", cut: func() {
		_ = http.NewResponseController(rw).SetWriteDeadline(time.Now())
	}}
	key := string(m.ID)
	ws.streams.Lock()
	if ws.open[key] != nil {
		ws.streams.Unlock()
		refuse(rw, http.StatusBadRequest, m.ID, jsonrpc.InvalidRequest, "the id is in use by another request")
		return
	}
	ws.open[key] = st
	ws.audience.join(st)
	ws.streams.Unlock()
	defer func() {
		ws.streams.Lock()
		delete(ws.open, key)
		delete(ws.aliases, key)
		ws.used = time.Now()
		ws.streams.Unlock()
		ws.audience.leave(st)
		ws.read.Broadcast()
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
	ws.take(m)
	passed()
	gone := func() {
		if ws.id == "" {
			ws.take(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": m.ID, "reason": "the client has disconnected"}))
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
			out = ws.restore(out)
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
			ws.read.Broadcast()
		case <-r.Context().Done():
			gone()
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

// listen serves the notification stream, for messages that belong to no request.
func (ws *webSession) listen(rw http.ResponseWriter, r *http.Request) {
	st := &downstream{Mailbox: jsonrpc.NewMailbox()}
	ws.streams.Lock()
	if ws.get != nil {
		ws.streams.Unlock()
		refuse(rw, http.StatusConflict, nil, jsonrpc.InvalidRequest, "the session has a notification stream already")
		return
	}
	ws.get = st
	for m := ws.pending.Next(); m != nil; m = ws.pending.Next() {
		st.Put(m, maxUnsent)
	}
	ws.streams.Unlock()
	defer func() {
		ws.streams.Lock()
		ws.get = nil
		ws.used = time.Now()
		ws.streams.Unlock()
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
				return
			}
			st.Sent()
		case <-ping.C: // otherwise a host that has gone would go unnoticed
			limitWrite(rw)
			if _, err := io.WriteString(rw, ": \n\n"); err != nil {
				return
			}
			flush(rw)
		case <-ws.over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// route queues a message on the response that it belongs to. It waits for no client.
func (ws *webSession) route(m *jsonrpc.Message) {
	ws.streams.Lock()
	defer ws.streams.Unlock()
	if m.IsResponse() {
		if st := ws.open[string(m.ID)]; st != nil { // otherwise the client has gone
			st.Put(m, 0)
			ws.bound()
		}
		return
	}
	switch st := ws.streamOf(m); {
	case st == nil && ws.id != "":
		ws.pending.Put(m, maxUnsent)
	case st == nil && m.IsRequest():
		go ws.take(jsonrpc.Failure(m.ID, "no request is open that this could belong to"))
	case st == nil:
	case m.IsRequest(): // the server waits for the answer
		st.Put(m, 0)
		ws.bound()
	case st == ws.get:
		st.Put(m, maxUnsent)
	default:
		st.Put(m, maxAnswers)
		ws.bound()
	}
}

func (ws *webSession) bound() {
	if ws.audience.bound() {
		ws.Logger.Warn("clients that do not read their answers were cut off")
	}
}

// streamOf returns the response for a message that is no answer, or nil. The caller holds ws.streams.
func (ws *webSession) streamOf(m *jsonrpc.Message) *downstream {
	if st := ws.open[m.About]; m.About != "" && st != nil {
		return st
	}
	if ws.id == "" {
		return ws.namedIn(m)
	}
	// A server over stdio does not say which call a message is about. If only one call is open, it is
	// that one.
	var calls []*downstream
	for _, st := range ws.open {
		if st.call {
			calls = append(calls, st)
		}
	}
	switch {
	case len(calls) == 1:
		return calls[0]
	case ws.get != nil:
		return ws.get
	default:
		for _, st := range ws.open {
			return st
		}
	}
	return nil
}

// namedIn returns the response to the request that stands alone whose progress or subscription m is about, or
// nil. Everything else may be about the request of another client, also of one that has gone. The caller holds
// ws.streams.
func (ws *webSession) namedIn(m *jsonrpc.Message) *downstream {
	if m.About != "" {
		return nil // its client has gone
	}
	var params struct {
		ProgressToken json.RawMessage
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	_ = adapter.Unmarshal(m.Params, &params)
	for _, name := range []json.RawMessage{params.ProgressToken, params.Meta[subscriptionKey]} {
		if st := ws.open[string(name)]; st != nil {
			return st
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A webSession is a session whose messages are sent on HTTP responses.
type webSession struct {
	*session
	id    string // "" for the session that requests which stand alone share
	stop  context.CancelFunc
	over  chan struct{}
	input sync.Mutex // messages of the host are handled one at a time

	streams sync.Mutex
	open    map[string]*downstream // responses to requests, by id
	get     *downstream            // notification stream, for all other messages
	pending []*message
	used    time.Time
	aliases map[string]alias // of requests that stand alone, by the quoted id of the proxy
	names   int
}

// A downstream is a response on which messages are sent.
type downstream struct {
	c    chan *message
	gone <-chan struct{}
	call bool
}

// take handles a message of the host.
func (ws *webSession) take(m *message) {
	ws.input.Lock()
	defer ws.input.Unlock()
	ws.fromHost(context.Background(), m)
}

// answer passes on a request, and sends the host everything about it until it is answered.
func (ws *webSession) answer(rw http.ResponseWriter, r *http.Request, m *message) {
	if ws.id == "" {
		m = ws.rename(m)
	}
	st := &downstream{c: make(chan *message, 64), gone: r.Context().Done(), call: m.Method == "tools/call"}
	key := string(m.ID)
	ws.streams.Lock()
	if ws.open[key] != nil {
		ws.streams.Unlock()
		refuse(rw, http.StatusBadRequest, m.ID, invalidRequest, "the id is in use by another request")
		return
	}
	ws.open[key] = st
	ws.streams.Unlock()
	defer func() {
		ws.streams.Lock()
		delete(ws.open, key)
		delete(ws.aliases, key)
		ws.used = time.Now()
		ws.streams.Unlock()
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
	for {
		select {
		case out := <-st.c:
			last := out.isResponse() && string(out.ID) == key
			out = ws.restore(out)
			switch {
			case events:
				writeEvent(rw, out)
			case last:
				rw.Header().Set("Content-Type", "application/json")
				_, _ = rw.Write(out.raw)
			}
			if last {
				return
			}
		case <-r.Context().Done():
			if ws.id == "" {
				ws.take(notification("notifications/cancelled", map[string]any{"requestId": m.ID, "reason": "the client has disconnected"}))
			}
			return // the client of a session may come back, and cancels with a message
		}
	}
}

func writeEvent(rw http.ResponseWriter, m *message) {
	_, _ = fmt.Fprintf(rw, "event: message\ndata: %s\n\n", m.raw)
	flush(rw)
}

func flush(rw http.ResponseWriter) { _ = http.NewResponseController(rw).Flush() }

// listen serves the notification stream, for messages that belong to no request.
func (ws *webSession) listen(rw http.ResponseWriter, r *http.Request) {
	st := &downstream{c: make(chan *message, 64), gone: r.Context().Done()}
	ws.streams.Lock()
	if ws.get != nil {
		ws.streams.Unlock()
		refuse(rw, http.StatusConflict, nil, invalidRequest, "the session has a notification stream already")
		return
	}
	ws.get = st
	pending := ws.pending
	ws.pending = nil
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
	for _, m := range pending {
		writeEvent(rw, m)
	}
	ping := time.NewTicker(streamPing)
	defer ping.Stop()
	for {
		select {
		case m := <-st.c:
			writeEvent(rw, m)
		case <-ping.C: // otherwise a host that has gone would go unnoticed
			_, _ = io.WriteString(rw, ": \n\n")
			flush(rw)
		case <-ws.over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// route sends a message on the response that it belongs to.
func (ws *webSession) route(m *message) {
	ws.streams.Lock()
	var st *downstream
	switch {
	case m.isResponse():
		st = ws.open[string(m.ID)]
		if st == nil {
			ws.streams.Unlock()
			return // the client has gone
		}
	case m.about != "" && ws.open[m.about] != nil:
		st = ws.open[m.about]
	default:
		// A server over stdio does not say which call a message is about. If only one call is open,
		// it is that one.
		for _, o := range ws.open {
			if !o.call {
				continue
			}
			if st != nil {
				st = nil
				break
			}
			st = o
		}
		if st == nil {
			st = ws.get
		}
		for _, o := range ws.open {
			if st == nil && ws.id != "" {
				st = o
			}
		}
	}
	if st == nil && ws.id != "" && len(ws.pending) < maxPending {
		ws.pending = append(ws.pending, m)
	}
	ws.streams.Unlock()
	if st == nil {
		return
	}
	select {
	case st.c <- m:
		return
	default:
	}
	send := func() {
		select {
		case st.c <- m:
		case <-st.gone:
		}
	}
	switch {
	case ws.id != "":
		send()
	case m.isResponse(): // a client that does not read must not hold up the others
		go send()
	}
}

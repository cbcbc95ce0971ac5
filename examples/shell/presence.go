package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const sessionHeader = "Mcp-Session-Id"

// Most clients hold the stream for messages of the server open, and its end shows that a client has gone. A client may
// come back within comeBack, as after a lost connection. A client that never had that stream gives no sign between two
// requests, so it may be silent for silence.
const (
	comeBack = 10 * time.Second
	silence  = 30 * time.Minute
)

// A presence ends the sessions of clients that have gone. The protocol has a request for that, which a client that is
// killed does not send. The SDK's SessionTimeout was rejected: it does not know the stream, and would end the
// session of a client that waits for its user.
type presence struct {
	desk   *desk
	server *mcp.Server

	mu  sync.Mutex
	all map[string]*visit
}

type visit struct {
	open     int // requests
	streamed bool
	gone     *time.Timer
}

func newPresence(d *desk, s *mcp.Server) *presence {
	return &presence{desk: d, server: s, all: map[string]*visit{}}
}

func (p *presence) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(sessionHeader)
		if id == "" {
			next.ServeHTTP(w, r)
			if id := w.Header().Get(sessionHeader); id != "" { // it has been opened
				p.enter(id, false)
				p.leave(id)
			}
			return
		}
		// With an id of an event it is the rest of an answer, which tells nothing of the stream.
		p.enter(id, r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "")
		defer p.leave(id)
		next.ServeHTTP(w, r)
	})
}

func (p *presence) enter(id string, stream bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.all[id]
	if v == nil {
		if p.session(id) == nil {
			return // an id that somebody has made up
		}
		v = new(visit)
		p.all[id] = v
	}
	v.open++
	v.streamed = v.streamed || stream
	if v.gone != nil {
		v.gone.Stop()
	}
}

func (p *presence) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.all[id]
	if v == nil {
		return
	}
	if v.open--; v.open > 0 {
		return
	}
	after := silence
	if v.streamed {
		after = comeBack
	}
	v.gone = time.AfterFunc(max(after, p.desk.lingering), func() { p.end(id, v) })
}

// end ends a session, unless its client has just come back.
func (p *presence) end(id string, v *visit) {
	p.mu.Lock()
	if p.all[id] != v || v.open > 0 {
		p.mu.Unlock()
		return
	}
	delete(p.all, id)
	s := p.session(id)
	p.mu.Unlock()
	if s != nil {
		p.desk.leave(s)
		s.Close()
	}
}

func (p *presence) session(id string) *mcp.ServerSession {
	for s := range p.server.Sessions() {
		if s.ID() == id {
			return s
		}
	}
	return nil
}

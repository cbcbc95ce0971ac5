package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const sessionHeader = "Mcp-Session-Id"

// comeBack and silence are the times after which a client without an open request counts as gone. comeBack is for a
// client that has had a notification stream, whose end shows that the client has disconnected; it may reconnect within
// comeBack. silence is for a client that never had such a stream.
const (
	comeBack = 10 * time.Second
	silence  = 30 * time.Minute
)

// A presence ends the sessions of clients that have disconnected, because a killed client does not send the request
// that ends a session. The SDK's SessionTimeout is not used: it does not count the notification stream, and would end
// the session of a client that waits for its user.
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
			if id := w.Header().Get(sessionHeader); id != "" { // the request has opened a session
				p.enter(id, false)
				p.leave(id)
			}
			return
		}
		// A GET with the id of an event resumes an answer, and is not the notification stream.
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
			return // the session does not exist
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

// end ends a session, unless its client has sent another request meanwhile.
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

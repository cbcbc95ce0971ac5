package stream

import (
	"net/http"
	"sync"
	"time"
)

// A client of MCP ends its session with a DELETE, and then its streams. The server may end the streams in between.
// That is no outage, because the client no longer needs them.

// sessionHeader is the header with the ID of the session that a request belongs to (MCP, Streamable HTTP).
const sessionHeader = "Mcp-Session-Id"

// closingWait is the time for which a stream that ends after the DELETE of its session waits for the client to close
// it.
const closingWait = 10 * time.Second

// A session is an MCP session that has open streams.
type session struct {
	streams int           // guarded by sessions.mu
	once    sync.Once     // closes ending
	ending  chan struct{} // closed when the client ends the session
}

// sessions holds the sessions with open streams of the whole process, because an http.Client may send the DELETE on
// another connection, and even through another Notifications.
var sessions = struct {
	mu  sync.Mutex
	all map[string]*session
}{all: make(map[string]*session)}

func sessionKey(req *http.Request) string {
	id := req.Header.Get(sessionHeader)
	if id == "" || req.URL == nil {
		return ""
	}
	return req.URL.Host + " " + id
}

// enterSession registers a stream with the session of req, until leave is called. ending is closed when the client
// ends the session. It is nil if req belongs to no session.
func enterSession(req *http.Request) (ending <-chan struct{}, leave func()) {
	key := sessionKey(req)
	if key == "" {
		return nil, func() {}
	}
	sessions.mu.Lock()
	defer sessions.mu.Unlock()
	s := sessions.all[key]
	if s == nil {
		s = &session{ending: make(chan struct{})}
		sessions.all[key] = s
	}
	s.streams++
	return s.ending, sync.OnceFunc(func() {
		sessions.mu.Lock()
		defer sessions.mu.Unlock()
		if s.streams--; s.streams == 0 && sessions.all[key] == s {
			delete(sessions.all, key)
		}
	})
}

// endSession records that the client is ending the session of req.
func endSession(req *http.Request) {
	sessions.mu.Lock()
	s := sessions.all[sessionKey(req)]
	sessions.mu.Unlock()
	if s != nil {
		s.once.Do(func() { close(s.ending) })
	}
}

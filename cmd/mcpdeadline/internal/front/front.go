package front

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// Bounds on the cost of hosts that have gone without a word.
const (
	MaxSessions = 100 // and servers; a further session replaces the one that was idle for longest
	streamPing  = 15 * time.Second
	ReadLimit   = 10 * time.Second // for a message
	// maxUnknown bounds a message of a client that has no session: before one is known, it has little to say.
	maxUnknown = 1 << 20
	// roomLimit is how long a new session waits for the end of a server that makes room for it.
	roomLimit = server.CloseLimit + server.TermLimit + 5*time.Second
)

// A Front serves hosts over Streamable HTTP. With a protocol that has sessions, each host has its own
// session and its own server. Requests from 2026-07-28 on stand alone and share one server.
type Front struct {
	*calls.Proxy

	reading  *memory // for the messages that are being read for all clients at the same time
	audience audience

	starting  sync.Mutex // held while alone is looked up or started
	mu        sync.Mutex
	sessions  map[string]*session
	alone     *session
	running   int           // servers of sessions, also of those that are ending
	fewer     chan struct{} // closed, and replaced, when running has become less
	newcomers int           // sessions that wait for the end of a server
	closing   bool          // no session begins any more
	ended     sync.WaitGroup
}

func New(p *calls.Proxy) *Front {
	two := 2 * int64(p.Max) // messages that are as large as can be
	return &Front{
		Proxy: p, sessions: make(map[string]*session), fewer: make(chan struct{}),
		reading: newMemory(two), audience: audience{most: two},
	}
}

func (f *Front) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(rw, r)
	case http.MethodGet:
		if s := f.sessionOf(rw, r); s != nil {
			s.listen(rw, r)
		}
	case http.MethodDelete:
		if s := f.sessionOf(rw, r); s != nil {
			f.forget(s)
			s.stop()
			rw.WriteHeader(http.StatusNoContent)
		}
	default:
		rw.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(rw, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
	}
}

// refuse answers with a JSON-RPC error.
func refuse(rw http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if id == nil {
		id = json.RawMessage("null")
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

// known returns the session that a request names, or nil.
func (f *Front) known(r *http.Request) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[r.Header.Get("Mcp-Session-Id")]
}

// sessionOf returns the session that a request names. If there is none, it answers the request and
// returns nil.
func (f *Front) sessionOf(rw http.ResponseWriter, r *http.Request) *session {
	if r.Header.Get("Mcp-Session-Id") == "" {
		refuse(rw, http.StatusBadRequest, nil, jsonrpc.InvalidRequest, "want an Mcp-Session-Id")
		return nil
	}
	s := f.known(r)
	if s == nil {
		refuse(rw, http.StatusNotFound, nil, jsonrpc.InvalidRequest, "no such session")
	}
	return s
}

func (f *Front) post(rw http.ResponseWriter, r *http.Request) {
	line, give, ok := f.body(rw, r)
	defer give()
	if !ok {
		return
	}
	m := jsonrpc.Parse(line)
	if !m.IsRequest() && !m.IsNotification() && !m.IsResponse() {
		if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
			refuse(rw, http.StatusBadRequest, nil, jsonrpc.ParseError, err.Error())
			return
		}
		refuse(rw, http.StatusBadRequest, nil, jsonrpc.InvalidRequest, "want one JSON-RPC message")
		return
	}
	version, _ := jsonrpc.StandsAlone(m)
	var s *session
	switch {
	case version >= "2026-07-28" || r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
		if s = f.together(); s == nil {
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, "mcpdeadline is shutting down")
			return
		}
	case m.Method == "initialize":
		if s = f.begin(r.Context(), rand.Text()); s == nil {
			rw.Header().Set("Retry-After", "10")
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, fmt.Sprintf("there are %d sessions, and all of them are in use", MaxSessions))
			return
		}
		rw.Header().Set("Mcp-Session-Id", s.id)
	default:
		if s = f.sessionOf(rw, r); s == nil {
			return
		}
	}
	if !m.IsRequest() {
		if s.id != "" { // without a session, a notification belongs to nothing
			s.take(m)
		}
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	s.answer(rw, r, m, give)
}

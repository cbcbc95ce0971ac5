package front

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// Bounds on the cost of hosts that have disconnected without ending their sessions.
const (
	MaxSessions = 100              // most sessions with a server; see Front.begin
	streamPing  = 15 * time.Second // between two comments on a notification stream, which detect a lost connection
	ReadLimit   = 10 * time.Second // for reading a message
	// maxUnknown bounds a message of a client without a session, such as initialize, in bytes.
	maxUnknown = 1 << 20
	// roomLimit is how long a new session waits for the end of the server of another session.
	roomLimit = server.CloseLimit + server.TermLimit + 5*time.Second
)

// A Front is an http.Handler that serves hosts over Streamable HTTP. With a protocol that has sessions, each host has
// its own session and its own server. Requests of protocol 2026-07-28 have no session, and share one server.
type Front struct {
	*calls.Proxy

	reading  *semaphore.Weighted // the bytes of all messages that are being read or handled
	audience audience

	starting  sync.Mutex          // held while alone is looked up or started
	mu        sync.Mutex          // guards the fields below, except ended
	sessions  map[string]*session // by id
	alone     *session            // for requests without a session; nil if it has not started or has ended
	running   int                 // number of servers in sessions, including sessions that are ending
	fewer     chan struct{}       // closed, and replaced, when running has decreased
	newcomers int                 // number of calls of begin that wait for the end of a server
	closing   bool                // End has been called, and no session begins any more
	ended     sync.WaitGroup
}

func New(p *calls.Proxy) *Front {
	two := 2 * int64(p.Max) // two messages of the largest size
	return &Front{
		Proxy: p, sessions: make(map[string]*session), fewer: make(chan struct{}),
		reading: semaphore.NewWeighted(two), audience: audience{most: two, listeners: make(map[*downstream]bool)},
	}
}

// refuse answers an HTTP request with a status and a JSON-RPC error.
func refuse(rw http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(jsonrpc.Refusal(id, jsonrpc.Error{Code: code, Message: text}).Raw)
}

// known returns the session in the header of a request, or nil if it has none or the session does not exist.
func (f *Front) known(r *http.Request) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[r.Header.Get("Mcp-Session-Id")]
}

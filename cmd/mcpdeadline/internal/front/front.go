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

// Bounds on the cost of hosts that have gone without a word.
const (
	MaxSessions = 100 // most sessions, and servers; a further session replaces the one that has been idle for longest
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

	reading  *semaphore.Weighted // bytes for the messages that are being read for all clients at the same time
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
		reading: semaphore.NewWeighted(two), audience: audience{most: two},
	}
}

// refuse answers with a JSON-RPC error.
func refuse(rw http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(jsonrpc.Refusal(id, jsonrpc.Error{Code: code, Message: text}).Raw)
}

// known returns the session that a request names, or nil.
func (f *Front) known(r *http.Request) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[r.Header.Get("Mcp-Session-Id")]
}

package front

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A session is a [calls.Session] whose messages for the host are sent on HTTP responses.
type session struct {
	*calls.Session
	id   string // "" for the session that requests which stand alone share
	stop context.CancelFunc
	over chan struct{}

	audience *audience  // of all sessions
	input    sync.Mutex // messages of the host are handled one at a time

	streams     sync.Mutex
	open        map[string]*downstream // responses to requests, by id
	get         *downstream            // notification stream, for all other messages
	pending     *jsonrpc.Mailbox       // of messages for a notification stream that is not there
	read        sync.Cond              // a client has read, or has gone
	unthrottled bool                   // nobody waits for clients any more
	used        time.Time
	aliases     map[string]alias // of requests that stand alone, by the quoted id of the proxy
	names       int
}

// An alias holds the id and the token that a client gave a request. Requests that stand alone come
// from many clients, which may all use the same ids.
type alias struct{ id, token json.RawMessage }

// standing returns when the session was used last, whether a client listens, and whether anything is under way. A
// question of the server counts only while a client listens: a client that has gone never answers.
func (s *session) standing() (last time.Time, listens, busy bool) {
	asked, asks := s.Busy()
	s.streams.Lock()
	defer s.streams.Unlock()
	listens = s.get != nil
	return s.used, listens, asked || asks && listens || len(s.open) > 0
}

// ease lets the server go on whether or not clients read.
func (s *session) ease() {
	s.streams.Lock()
	s.unthrottled = true
	s.streams.Unlock()
	s.read.Broadcast()
}

// awaitClients waits until the clients of a session have read most of what its requests have been answered. The
// clients of requests that stand alone do not hold up each other.
func (s *session) awaitClients() {
	s.streams.Lock()
	defer s.streams.Unlock()
	for s.id != "" && !s.unthrottled {
		size := 0
		for _, st := range s.open {
			size += st.Bytes()
		}
		if size <= jsonrpc.QueueOf(s.Max) {
			return
		}
		s.read.Wait()
	}
}

// take handles a message of the host.
func (s *session) take(m *jsonrpc.Message) {
	s.streams.Lock()
	s.used = time.Now()
	s.streams.Unlock()
	s.input.Lock()
	defer s.input.Unlock()
	s.FromHost(context.Background(), m)
}

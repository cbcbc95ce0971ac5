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
	id   string // "" for the session that all requests of protocol 2026-07-28 share
	stop context.CancelFunc
	over chan struct{}

	audience *audience  // shared by all sessions
	input    sync.Mutex // held while a message of the host is handled

	streams     sync.Mutex             // guards the fields below
	open        map[string]*downstream // responses to requests, by the id of the request
	get         *downstream            // the notification stream; nil if none is open
	pending     *jsonrpc.Mailbox       // the messages for the notification stream, whether or not one is open
	read        sync.Cond              // signalled when a client has read a message or disconnected
	unthrottled bool                   // awaitClients does not wait any more
	used        time.Time              // when the host last used the session
	aliases     map[string]alias       // by the id that rename has given to the request, as JSON
	names       int                    // number of ids that rename has given
}

// An alias holds the id and the progress token that a client has given to a request; see rename.
type alias struct{ id, token json.RawMessage }

// standing returns when the session was last used, whether a notification stream is open, and whether the session is
// busy: requests are in flight. A request of the server counts only while a notification stream is open, because a
// client that has disconnected never answers.
func (s *session) standing() (last time.Time, listens, busy bool) {
	asked, asks := s.Busy()
	s.streams.Lock()
	defer s.streams.Unlock()
	listens = s.get != nil
	return s.used, listens, asked || asks && listens || len(s.open) > 0
}

// ease makes awaitClients return, now and in future, whether or not clients read.
func (s *session) ease() {
	s.streams.Lock()
	s.unthrottled = true
	s.streams.Unlock()
	s.read.Broadcast()
}

// awaitClients waits until the host has read most of the bytes that are queued on the responses of the session. It does
// not wait if requests of several clients share the session, so that a client cannot block the others.
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

// forgo ends the response to a request that will not be answered.
func (s *session) forgo(id json.RawMessage) {
	s.streams.Lock()
	defer s.streams.Unlock()
	if st := s.open[string(id)]; st != nil {
		st.Close()
	}
}

// take handles a message of the host. It may wait for the server, and for earlier messages.
func (s *session) take(m *jsonrpc.Message) {
	s.streams.Lock()
	s.used = time.Now()
	s.streams.Unlock()
	s.input.Lock()
	defer s.input.Unlock()
	s.FromHost(m)
}

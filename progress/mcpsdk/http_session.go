package mcpsdk

import (
	"context"
	"errors"
	"sync"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

// errSessionEnded is why a call is aborted whose client has ended the session.
var errSessionEnded = errors.New("the client has ended the session")

// endWait is how long a request to end a session may take before its calls are aborted. One
// that the SDK turns away, for another user's session say, is answered at once; one that it
// accepts waits for the calls.
const endWait = 50 * time.Millisecond

// sessionCalls is what runs in each session of a handler.
type sessionCalls struct {
	mu      sync.Mutex
	running map[string]map[*context.CancelCauseFunc]struct{}
}

func newSessionCalls() *sessionCalls {
	return &sessionCalls{running: make(map[string]map[*context.CancelCauseFunc]struct{})}
}

// add enters a call of a session, until it is removed.
func (s *sessionCalls) add(id string, cancel context.CancelCauseFunc) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == nil {
		s.running[id] = make(map[*context.CancelCauseFunc]struct{})
	}
	s.running[id][&cancel] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running[id], &cancel)
		if len(s.running[id]) == 0 {
			delete(s.running, id)
		}
	}
}

// ending is called when a request has come to end a session, and what it gives when that has
// been answered.
func (s *sessionCalls) ending(id string) (answered func()) {
	timer := time.AfterFunc(endWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for cancel := range s.running[id] {
			(*cancel)(errSessionEnded)
		}
	})
	return func() { timer.Stop() }
}

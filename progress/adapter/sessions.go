package adapter

import (
	"context"
	"sync"
)

// Sessions holds the calls of each session, so that they can be aborted when the session ends. The
// zero value is ready to use. It is safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	running map[any]map[*context.CancelCauseFunc]struct{}
}

// Join returns a context for a call of a session, which [Sessions.Abort] cancels. The session is
// any comparable value. Call release when the call is over.
func (s *Sessions) Join(ctx context.Context, session any) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[any]map[*context.CancelCauseFunc]struct{})
	}
	if s.running[session] == nil {
		s.running[session] = make(map[*context.CancelCauseFunc]struct{})
	}
	s.running[session][&cancel] = struct{}{}
	return ctx, func() {
		s.mu.Lock()
		delete(s.running[session], &cancel)
		if len(s.running[session]) == 0 {
			delete(s.running, session)
		}
		s.mu.Unlock()
		cancel(nil)
	}
}

// Abort cancels the calls of a session with a cause. Calls that join later are not affected.
func (s *Sessions) Abort(session any, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cancel := range s.running[session] {
		(*cancel)(cause) // AfterFuncs run on goroutines of their own, so none can need the lock
	}
}

// AbortAll cancels the calls of all sessions with a cause. Calls that join later are not affected.
func (s *Sessions) AbortAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.running {
		for cancel := range calls {
			(*cancel)(cause)
		}
	}
}

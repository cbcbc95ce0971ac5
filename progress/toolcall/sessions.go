package toolcall

import (
	"context"
	"errors"
	"sync"
)

// Why a call is aborted that nobody waits for any more; the cause of its context.
var (
	ErrDisconnected = errors.New("the client has disconnected")
	ErrSessionEnded = errors.New("the client has ended the session")
)

// Sessions knows what runs for each session, to abort it when that ends. The zero Sessions is
// ready to use, and safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	running map[any]map[*context.CancelCauseFunc]struct{}
}

// Join returns a context for a call of a session, any comparable value, which [Sessions.Abort]
// cancels. Call release when the call is over.
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

// Abort cancels what runs for a session, with a cause. What joins later is not affected.
func (s *Sessions) Abort(session any, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cancel := range s.running[session] {
		(*cancel)(cause) // AfterFuncs run on goroutines of their own, so none can need the lock
	}
}

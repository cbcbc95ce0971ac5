package adapter

import (
	"context"
	"sync"

	"github.com/tooldeadline/tooldeadline/internal/identity"
)

// Sessions holds the calls of each session, so that they can be aborted when the client cancels one or the session ends.
// The zero value is ready to use. It is safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	running map[any]map[*context.CancelCauseFunc]any // the ids of requests, by session
}

// Join returns a context for a call of a session, which [Sessions.Abort] cancels. request is the id of its request, a
// string or a number, or nil if it is not known. A session value that cannot be compared is equal to no other, so only
// an Abort of all sessions cancels its calls. Call release when the call is over.
func (s *Sessions) Join(ctx context.Context, session, request any) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := identity.Key(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[any]map[*context.CancelCauseFunc]any)
	}
	if s.running[key] == nil {
		s.running[key] = make(map[*context.CancelCauseFunc]any)
	}
	s.running[key][&cancel] = request
	return ctx, func() {
		s.mu.Lock()
		delete(s.running[key], &cancel)
		if len(s.running[key]) == 0 {
			delete(s.running, key)
		}
		s.mu.Unlock()
		cancel(nil)
	}
}

// Abort cancels a call of a session with a cause. If request is nil, it cancels all calls of the session, and if session
// is nil too, the calls of all sessions. Calls that join later are not affected.
func (s *Sessions) Abort(session, request any, cause error) {
	key := identity.Key(session)
	var calls []*context.CancelCauseFunc
	s.mu.Lock()
	sessions := map[any]map[*context.CancelCauseFunc]any{key: s.running[key]}
	if session == nil {
		sessions = s.running
	}
	for _, running := range sessions {
		for cancel, id := range running {
			if request == nil || id == request {
				calls = append(calls, cancel)
			}
		}
	}
	s.mu.Unlock()
	// Without the lock: a context of the caller's, from which those of the calls are derived, may have a stop function.
	for _, cancel := range calls {
		(*cancel)(cause)
	}
}

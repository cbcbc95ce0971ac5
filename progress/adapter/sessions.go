package adapter

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tooldeadline/tooldeadline/internal/identity"
)

// Sessions holds the calls of each session, so that they can be aborted when the session ends. The
// zero value is ready to use. It is safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	running map[any]map[*context.CancelCauseFunc]struct{}
}

// Join returns a context for a call of a session, which [Sessions.Abort] cancels. A session value that
// cannot be compared is equal to no other, so only an Abort of all sessions cancels its calls. Call release
// when the call is over.
func (s *Sessions) Join(ctx context.Context, session any) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := identity.Key(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[any]map[*context.CancelCauseFunc]struct{})
	}
	if s.running[key] == nil {
		s.running[key] = make(map[*context.CancelCauseFunc]struct{})
	}
	s.running[key][&cancel] = struct{}{}
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

// Abort cancels the calls of a session with a cause. If session is nil, it cancels the calls of all sessions. Calls
// that join later are not affected.
func (s *Sessions) Abort(session any, cause error) {
	key := identity.Key(session)
	s.mu.Lock()
	calls := slices.Collect(maps.Keys(s.running[key]))
	if session == nil {
		for _, of := range s.running {
			calls = slices.AppendSeq(calls, maps.Keys(of))
		}
	}
	s.mu.Unlock()
	// Without the lock: a context of the caller's, from which those of the calls are derived, may have a stop function.
	for _, cancel := range calls {
		(*cancel)(cause)
	}
}

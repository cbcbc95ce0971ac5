package front

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// begin starts a session and its server. id is "" for the session of requests without a session. If there are
// MaxSessions servers, begin ends the session that was unused for longest and waits up to roomLimit for the end of its
// server. It returns nil if all sessions are busy, if that wait or ctx ends first, or after End.
func (f *Front) begin(ctx context.Context, id string) *session {
	ctx, cancel := context.WithTimeout(ctx, roomLimit)
	defer cancel()
	f.mu.Lock()
	for id != "" && f.running >= MaxSessions && !f.closing {
		// Sessions that are already ending make room for the newcomers that wait. End another only for the rest.
		if len(f.sessions)+f.newcomers >= MaxSessions && !f.makeRoom() {
			f.mu.Unlock()
			return nil
		}
		f.newcomers++
		fewer := f.fewer
		f.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
		}
		f.mu.Lock()
		f.newcomers--
		if ctx.Err() != nil {
			break
		}
	}
	if f.closing || ctx.Err() != nil {
		f.mu.Unlock()
		return nil
	}
	serving, stop := context.WithCancel(context.Background())
	s := &session{id: id, audience: &f.audience, over: make(chan struct{}), open: make(map[string]*downstream), pending: jsonrpc.NewMailbox(), used: time.Now(), aliases: make(map[string]alias)}
	s.read.L = &s.streams
	s.stop = func() { stop(); s.ease() }
	s.Session = calls.NewSession(f.Proxy, id, s.route)
	s.Room, s.Forgone = s.awaitClients, s.forgo
	if id == "" {
		f.alone = s
	} else {
		f.sessions[id] = s
		f.running++
	}
	f.ended.Add(1)
	f.mu.Unlock()
	go func() {
		defer f.ended.Done()
		defer s.stop()
		if err := s.Serve(serving); err != nil {
			fmt.Fprintln(f.Stderr, "mcpdeadline:", err)
		}
		f.forget(s)
		close(s.over)
		if id != "" {
			f.mu.Lock()
			f.running--
			close(f.fewer)
			f.fewer = make(chan struct{})
			f.mu.Unlock()
		}
	}()
	return s
}

// together returns the session that all requests of protocol 2026-07-28 share, and starts it if necessary. It returns
// nil after End.
func (f *Front) together() *session {
	f.starting.Lock()
	defer f.starting.Unlock()
	f.mu.Lock()
	s := f.alone
	f.mu.Unlock()
	if s == nil {
		s = f.begin(context.Background(), "")
	}
	return s
}

func (f *Front) forget(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.alone == s {
		f.alone = nil
	} else if f.sessions[s.id] == s {
		delete(f.sessions, s.id)
	}
}

// makeRoom ends the session that was unused for longest, and does not wait for the end. It prefers sessions without a
// notification stream, and never ends a busy session. It returns false if all sessions are busy. The caller holds f.mu.
func (f *Front) makeRoom() bool {
	var victim *session
	var victimListens bool
	var since time.Time
	for _, s := range f.sessions {
		used, listens, busy := s.standing()
		if busy {
			continue
		}
		if victim == nil || victimListens && !listens || victimListens == listens && used.Before(since) {
			victim, victimListens, since = s, listens, used
		}
	}
	if victim == nil {
		return false
	}
	delete(f.sessions, victim.id)
	victim.stop()
	return true
}

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSessions is the largest number of sessions over HTTP. A session lasts for over an hour if its
// client leaves without ending it.
const maxSessions = 100

// sessions bounds the number of sessions. At the bound, a new session replaces one that has no running
// call: one that was never used, if there is any, otherwise the one that has been idle for longest. A
// client that returns to a replaced session learns that it is gone, and opens another.
//
// Protocol 2026-07-28 has no sessions. The SDK's session of such a request has no id.
type sessions struct {
	mu  sync.Mutex
	all map[*mcp.ServerSession]*session
}

type session struct {
	last    time.Time
	used    bool // since it was opened
	running int
}

func (b *sessions) bound(s *mcp.Server) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ss, ok := req.GetSession().(*mcp.ServerSession)
			if !ok || ss.ID() == "" {
				return next(ctx, method, req)
			}
			leave, ok := b.use(s, ss, method)
			if !ok {
				return nil, errors.New("too many sessions, all in use")
			}
			defer leave()
			return next(ctx, method, req)
		}
	}
}

// use marks a session as in use until leave is called. It returns false if ss is new and all other sessions are in use.
func (b *sessions) use(s *mcp.Server, ss *mcp.ServerSession, method string) (leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.all[ss]
	if u == nil {
		if !b.makeRoom(s) {
			return nil, false
		}
		u = new(session)
		b.all[ss] = u
	}
	u.running++
	u.used = u.used || method != "initialize"
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		u.running--
		u.last = time.Now()
	}, true
}

// makeRoom closes a session, on another goroutine, if there are maxSessions, and reports whether there is room for
// another one. The caller holds b.mu.
func (b *sessions) makeRoom(s *mcp.Server) bool {
	open := make(map[*mcp.ServerSession]*session)
	for ss := range s.Sessions() {
		if u := b.all[ss]; u != nil {
			open[ss] = u
		}
	}
	b.all = open // without those that have ended
	if len(open) < maxSessions {
		return true
	}
	var victim *mcp.ServerSession
	for ss, u := range open {
		if u.running > 0 {
			continue
		}
		v := open[victim]
		if v == nil || u.used != v.used && v.used || u.used == v.used && u.last.Before(v.last) {
			victim = ss
		}
	}
	if victim == nil {
		return false
	}
	delete(open, victim)
	go victim.Close()
	return true
}

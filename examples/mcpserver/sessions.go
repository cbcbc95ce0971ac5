package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSessions is how many sessions there may be over HTTP. One lasts for over an hour if its
// client leaves without a word.
const maxSessions = 100

// sessions bounds their number: a new one takes the place of one in which nothing runs. That is
// one whose client has not gone on after it was opened, if there is any, and else the one that
// has not been used for longest. A client that comes back to such a session is told that there
// is none, and opens another.
//
// Protocol 2026-07-28 has no sessions, and those of its requests have no id.
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
				return nil, errors.New("there are too many sessions, and all are in use")
			}
			defer leave()
			return next(ctx, method, req)
		}
	}
}

// use returns what ends the use, and false where there is no room for a new session.
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

// makeRoom closes one if there are too many, and reports whether there is room. The caller has
// the lock.
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

package mcpsdk

import (
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A bySession holds a value for each session. The garbage collector frees the value with the session, because the SDK
// does not report when a session is closed.
type bySession[S, T any] struct {
	all sync.Map // weak.Pointer[S] to T
}

// of returns the value of a session. Its first call for the session sets the value to the result of first; concurrent
// calls may all call first, and return the same result.
func (b *bySession[S, T]) of(session *S, first func() T) T {
	key := weak.Make(session)
	if known, ok := b.all.Load(key); ok {
		return known.(T)
	}
	known, loaded := b.all.LoadOrStore(key, first())
	if !loaded {
		runtime.AddCleanup(session, func(key weak.Pointer[S]) { b.all.Delete(key) }, key)
	}
	return known.(T)
}

// A perSession holds a value for each session of a client.
type perSession[T any] struct {
	sessions bySession[mcp.ClientSession, *T]
}

// of returns the value of a session, which is a zero T at first. It returns nil if session is not a *mcp.ClientSession.
func (p *perSession[T]) of(session mcp.Session) *T {
	cs, _ := session.(*mcp.ClientSession)
	if cs == nil {
		return nil
	}
	return p.sessions.of(cs, func() *T { return new(T) })
}

package mcpsdk

import (
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A perSession holds a value for each session of a client. The garbage collector frees the value with the session,
// because the SDK does not report when a session is closed.
type perSession[T any] struct {
	all sync.Map // weak.Pointer[mcp.ClientSession] to *T
}

// of returns the value of a session, which is a zero T at first. It returns nil if session is not a *mcp.ClientSession.
func (p *perSession[T]) of(session mcp.Session) *T {
	cs, _ := session.(*mcp.ClientSession)
	if cs == nil {
		return nil
	}
	key := weak.Make(cs)
	if known, ok := p.all.Load(key); ok {
		return known.(*T)
	}
	known, loaded := p.all.LoadOrStore(key, new(T))
	if !loaded {
		runtime.AddCleanup(cs, func(key weak.Pointer[mcp.ClientSession]) { p.all.Delete(key) }, key)
	}
	return known.(*T)
}

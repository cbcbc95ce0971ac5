package mcpsdk

import (
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// perSession is what is known of each server of a client. It goes when the session does: nothing says when that
// is closed.
type perSession[T any] struct {
	all sync.Map // weak.Pointer[mcp.ClientSession] to *T
}

// of returns what is known of the server of a session, and nil where there is no session.
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

package mcpsdk

import (
	"crypto/rand"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Options are the settings of [Install] and [Handler]. See [adapter.Options] for the fields.
type Options = adapter.Options

// A Continuation configures how calls of clients that do not support tasks are continued. See [adapter.Continuation]
// for the fields.
type Continuation = adapter.Continuation

// settings holds the Options of a server, and the state of the adapter for it.
type settings struct {
	*adapter.Server
	offered bool // tasks are offered, and not only continuations
	names   sessionNames
	watched sync.Map // the names of the sessions for whose end abortWithSession waits
}

func newSettings(o *Options) *settings {
	return &settings{Server: adapter.NewServer(o, false), offered: o != nil && o.Tasks != nil}
}

// sessionNames assigns a unique name to each session, for use in place of a missing ID.
type sessionNames struct{ all sync.Map } // weak.Pointer[mcp.ServerSession] to string

func (n *sessionNames) of(session *mcp.ServerSession) string {
	key := weak.Make(session)
	if name, ok := n.all.Load(key); ok {
		return name.(string)
	}
	name, loaded := n.all.LoadOrStore(key, "connection "+rand.Text())
	if !loaded {
		runtime.AddCleanup(session, func(key weak.Pointer[mcp.ServerSession]) { n.all.Delete(key) }, key)
	}
	return name.(string)
}

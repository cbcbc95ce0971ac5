package mcpsdk

import (
	"crypto/rand"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Options are the settings of [Install] and [Handler].
type Options = adapter.Options

// A Continuation says how calls of clients without tasks go on: After how long, and with which wait Tool.
type Continuation = adapter.Continuation

// settings are the Options in the form that the adapter uses.
type settings struct {
	*adapter.Server
	repeats *adapter.Answers[mcp.Result] // nil without Idempotency
	names   sessionNames
	watched sync.Map // the sessions whose end is waited for, by name
}

func newSettings(o *Options) *settings {
	s := &settings{Server: adapter.NewServer(o)}
	if s.Idempotency {
		s.repeats = new(adapter.Answers[mcp.Result])
	}
	return s
}

// sessionNames gives sessions that have no ID a name that no other has.
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

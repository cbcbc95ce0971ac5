package mcpsdk

import (
	"sync"

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
	offered bool                                 // tasks are offered, and not only continuations
	names   bySession[mcp.ServerSession, string] // instead of missing ids
	watched sync.Map                             // the names of the sessions for whose end abortWithSession waits
}

func newSettings(o *Options) *settings {
	return &settings{Server: adapter.NewServer(o, false), offered: o != nil && o.Tasks != nil}
}

package mcpgo

import (
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of [Install] and [Handler]. See [adapter.Options] for the fields.
type Options = adapter.Options

// A Continuation configures how calls of clients that do not support tasks are continued. See [adapter.Continuation]
// for the fields.
type Continuation = adapter.Continuation

// settings holds the Options of a server or a Handler, and the state of the adapter for it.
type settings struct {
	*adapter.Server
	offered bool   // tasks are offered, and not only continuations
	watch   *watch // nil without Install
}

// ofServer returns the settings of a server.
func ofServer(o *Options) *settings {
	s := &settings{Server: adapter.NewServer(o, false), offered: o != nil && o.Tasks != nil}
	if s.Requests != nil {
		panic(&timeout.ConfigError{Key: "Options.Requests", Value: "set", Accepted: "the Wait that Sample takes: mcp-go does not show the requests of a tool"})
	}
	return s
}

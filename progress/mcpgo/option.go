package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of [Install] and [Handler].
type Options = adapter.Options

// A Continuation is how calls go on of clients that know no tasks: After how long, and by which Tool.
type Continuation = adapter.Continuation

// settings are Options as the adapter uses them.
type settings struct {
	adapter.Options
	calls   toolcall.Settings
	watch   *watch                                // nil without Install
	repeats *adapter.Answers[*mcp.CallToolResult] // nil without Idempotency
	offered bool                                  // tasks are, and not only continuations
}

// ofHandler are the settings of one tool.
func ofHandler(o *Options) *settings {
	s := new(settings)
	if o != nil {
		own := *o
		s.Await, own.Await = o.Await, progress.Wait{}
		o = &own
	}
	s.calls = o.Handler()
	return s
}

// ofServer are those of a server.
func ofServer(o *Options) *settings {
	s := new(settings)
	s.Options, s.calls = o.Server()
	if s.Requests != nil {
		panic(&timeout.ConfigError{Key: "Options.Requests", Value: "set", Accepted: "the Wait that Sample takes: mcp-go does not show the requests of a tool"})
	}
	if s.Idempotency {
		s.repeats = new(adapter.Answers[*mcp.CallToolResult])
	}
	return s
}

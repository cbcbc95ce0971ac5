package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of [Install] and [Handler].
type Options = adapter.Options

// A Continuation is how calls go on of clients that know no tasks: After how long, and by which Tool.
type Continuation = adapter.Continuation

// settings are Options as the adapter uses them.
type settings struct {
	*adapter.Server
	watch   *watch                                // nil without Install
	repeats *adapter.Answers[*mcp.CallToolResult] // nil without Idempotency
}

// ofServer are those of a server.
func ofServer(o *Options) *settings {
	s := &settings{Server: adapter.NewServer(o)}
	if s.Requests != nil {
		panic(&timeout.ConfigError{Key: "Options.Requests", Value: "set", Accepted: "the Wait that Sample takes: mcp-go does not show the requests of a tool"})
	}
	if s.Idempotency {
		s.repeats = new(adapter.Answers[*mcp.CallToolResult])
	}
	return s
}

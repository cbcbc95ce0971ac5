package mcpgo

import (
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Handler is [Install] for one tool; use one or the other. Convert a typed handler to a ToolHandlerFunc first:
//
//	s.AddTool(tool, mcpgo.Handler(mcp.NewTypedToolHandler(search), &mcpgo.Options{Limits: &timeout.Config{Total: time.Minute}}))
//
// mcp.NewStructuredToolHandler turns the error of its handler into text, even after the handler was
// stopped; the text that the client gets still begins with the message of the limit. Handler panics with a
// [*timeout.ConfigError] if h is nil, or if o has a field of a server.
func Handler(h server.ToolHandlerFunc, o *Options) server.ToolHandlerFunc {
	if h == nil {
		panic(&timeout.ConfigError{Key: "handler", Value: "nil", Accepted: "a handler"})
	}
	return (&settings{Server: adapter.NewHandler(o, true)}).wrap(h)
}

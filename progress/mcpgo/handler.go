package mcpgo

import (
	"github.com/mark3labs/mcp-go/server"
)

// Handler is [Middleware] for one tool; use one or the other. The limits are those that [WithPolicy]
// has for the tool's name, or else the process default. Convert a typed handler to a ToolHandlerFunc
// first:
//
//	s.AddTool(tool, mcpgo.Handler(mcp.NewTypedToolHandler(search)))
//
// mcp.NewStructuredToolHandler turns the error of its handler into text, even after the handler was
// stopped; the text that the client gets still begins with the message of the limit.
func Handler(h server.ToolHandlerFunc, opts ...HandlerOption) server.ToolHandlerFunc {
	return newSettings(opts, HandlerOption.forHandler).wrap(h)
}

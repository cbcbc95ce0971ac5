package mcpgo

import (
	"github.com/mark3labs/mcp-go/server"
)

// Handler is [Middleware] for one tool; use one or the other. The limits are those that
// [WithPolicy] has for the tool's name, or else the process default. Typed handlers become
// a ToolHandlerFunc first:
//
//	s.AddTool(tool, mcpgo.Handler(mcp.NewTypedToolHandler(search)))
//
// mcp.NewStructuredToolHandler makes a text of its handler's error, after a stop too; what
// the client gets has the limit's message before it all the same.
func Handler(h server.ToolHandlerFunc, opts ...HandlerOption) server.ToolHandlerFunc {
	return newSettings(opts, HandlerOption.forHandler).wrap(h)
}

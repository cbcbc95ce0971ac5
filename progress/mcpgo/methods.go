package mcpgo

import "github.com/mark3labs/mcp-go/mcp"

// sinceTasks is the version of the protocol with tasks.
const sinceTasks = "2025-11-25"

const (
	methodProgress = "notifications/progress"
	methodListing  = string(mcp.MethodToolsList)
	methodProbe    = "tasks/get"
	methodFetch    = "tasks/result"
)

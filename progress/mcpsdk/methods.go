package mcpsdk

// The methods that this package sends, answers or looks for.
const (
	methodInitialize = "initialize"
	methodList       = "tools/list"
	methodCall       = "tools/call"
	methodGet        = "tasks/get"
	methodUpdate     = "tasks/update"
	methodCancel     = "tasks/cancel"
	methodResult     = "tasks/result"               // only in protocol 2025-11-25
	methodStatus     = "notifications/tasks/status" // dropped by the SDK
	methodElicit     = "elicitation/create"
)

// The versions of the protocol that make a difference.
const (
	sinceTasks      = "2025-11-25" // has tasks and no extensions
	sinceResultType = "2026-07-28" // results name their type
)

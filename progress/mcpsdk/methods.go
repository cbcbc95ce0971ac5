package mcpsdk

// The methods of the protocol to which this package gives a meaning of its own.
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

// The versions of the protocol by which this package decides.
const (
	sinceTasks      = "2025-11-25" // the version with tasks but no extensions
	sinceResultType = "2026-07-28" // the first version whose results have a resultType
)

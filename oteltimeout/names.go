package oteltimeout

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Those of the conventions. The Go constants for them go with each version of the conventions
// into another package, and these have moved to a repository of their own that has none.
const (
	operationName = attribute.Key("gen_ai.operation.name")
	toolName      = attribute.Key("gen_ai.tool.name")
	methodName    = attribute.Key("mcp.method.name")
	requestID     = attribute.Key("jsonrpc.request.id")
	sessionID     = attribute.Key("mcp.session.id")
	errorType     = attribute.Key("error.type")

	executableName  = attribute.Key("process.executable.name")
	processExitCode = attribute.Key("process.exit.code")

	requestMethod = attribute.Key("http.request.method")
	route         = attribute.Key("http.route")

	executeTool  = "execute_tool"
	toolsCall    = "tools/call"
	toolError    = "tool_error"
	commandError = "command_error"
	other        = "_OTHER"
)

// Ours.
const (
	limitTotal     = attribute.Key("tooldeadline.limit.total")
	limitIdle      = attribute.Key("tooldeadline.limit.idle")
	beats          = attribute.Key("tooldeadline.beats")
	longestSilence = attribute.Key("tooldeadline.longest_silence")
	sinceBeat      = attribute.Key("tooldeadline.since_beat")

	eventNearIdle  = "tooldeadline.near_idle"
	eventStalled   = "tooldeadline.stalled"
	eventWouldStop = "tooldeadline.would_stop"
	eventAbandoned = "tooldeadline.abandoned"
)

// The conventions' buckets, in seconds.
var (
	toolBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	mcpBuckets  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

const (
	maxNames      = 500
	maxNameLength = 128 // in bytes; it is what MCP allows for a tool
)

// names bounds how many names are told apart.
type names struct {
	mu    sync.Mutex
	known map[string]struct{}
}

func (n *names) bounded(name string) string {
	if len(name) > maxNameLength {
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.known[name]; ok {
		return name
	}
	if len(n.known) >= maxNames {
		return other
	}
	n.known[name] = struct{}{}
	return name
}

// subject is what runs, as an attribute of metrics. The name of a handler is the pattern of its
// route; it has none where it goes around a whole mux.
func subject(operation timeout.Operation, name string) []attribute.KeyValue {
	switch operation {
	case timeout.OperationCommand:
		return []attribute.KeyValue{executableName.String(name)}
	case timeout.OperationHandler:
		method, path, ok := strings.Cut(name, " ")
		if !ok {
			method, path = "", name
		}
		var attrs []attribute.KeyValue
		if method != "" {
			attrs = append(attrs, requestMethod.String(method))
		}
		if i := strings.IndexByte(path, '/'); i > 0 {
			path = path[i:] // without the host
		}
		if path != "" {
			attrs = append(attrs, route.String(path))
		}
		return attrs
	}
	return []attribute.KeyValue{toolName.String(name)}
}

// cut bounds the length of a name or an id.
func cut(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameLength], "")
}

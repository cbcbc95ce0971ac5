package oteltimeout

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The names of the semantic conventions. Their Go constants move to another package with each version of the
// conventions, and those for generative AI now have a repository of their own, which has no constants.
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

// The names that this package defines.
const (
	limitTotal     = attribute.Key("tooldeadline.limit.total")
	limitIdle      = attribute.Key("tooldeadline.limit.idle")
	beats          = attribute.Key("tooldeadline.beats")
	longestSilence = attribute.Key("tooldeadline.longest_silence")
	sinceBeat      = attribute.Key("tooldeadline.since_beat")
	abortCause     = attribute.Key("tooldeadline.abort.cause")

	eventNearIdle  = "tooldeadline.near_idle"
	eventStalled   = "tooldeadline.stalled"
	eventClosing   = "tooldeadline.closing"
	eventWouldStop = "tooldeadline.would_stop"
	eventAbandoned = "tooldeadline.abandoned"
)

// The histogram buckets of the conventions, in seconds.
var (
	toolBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	mcpBuckets  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

const (
	maxNames      = 500
	maxNameLength = 128 // in bytes; the maximum that MCP allows for a tool
)

// names bounds the number of distinct names in telemetry.
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

// subject returns the attributes of metrics that identify the operation. The name of a handler is the pattern of its
// route; a handler that wraps a whole mux has no name.
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

// cut returns a name or an ID, cut to maxNameLength bytes.
func cut(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameLength], "")
}

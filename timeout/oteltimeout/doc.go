// Package oteltimeout reports tool executions to OpenTelemetry: a span and the metrics of each,
// by the semantic conventions for generative AI and for MCP.
//
// One line watches all tools of the process, with the global providers:
//
//	stop, err := oteltimeout.Watch()
//
// [Hooks] reports those alone to which it is given:
//
//	hooks, err := oteltimeout.Hooks()
//	...
//	mcpsdk.Install(server, policy, mcpsdk.WithOptions(timeout.WithHooks(hooks)))
//
// An execution is a tool's if it has a name, see [timeout.WithName]. The requests of a client
// that package request or the adapters supervise are none, and are not reported.
//
// # Spans
//
// The span of a tool has the name "execute_tool {tool}" and the kind INTERNAL. That of a
// tools/call that a server of progress/mcpsdk, progress/mcpgo or progress/toolcall has received
// is the server's, as the convention for MCP demands: its name is "tools/call {tool}" and its
// kind SERVER. It goes on from the trace context in the request's _meta, and links what span
// there was already, such as that of the HTTP request. It is in the function's context, so
// what the tool begins is its child. A client puts its trace context there with [Inject].
//
//	gen_ai.operation.name         execute_tool
//	gen_ai.tool.name              the tool
//	mcp.method.name               tools/call, of a server's only
//	error.type                    how it failed, if it did:
//	    idle_timeout              no heartbeat came for as long as the idle limit
//	    total_timeout             the total limit, or the caller's deadline
//	    aborted                   the caller has cancelled it
//	    panic                     the function has panicked
//	    goexit                    the function has called runtime.Goexit
//	    tool_error                the function has returned an error of its own
//	tooldeadline.limit.total      the limits as enforced, in seconds; absent if there is none
//	tooldeadline.limit.idle
//	tooldeadline.beats            how many heartbeats there were
//	tooldeadline.longest_silence  the longest stretch without one, in seconds
//
// The status of one that failed is Error, with the text of the error. The events of a span:
//
//	tooldeadline.near_idle        80 % of the idle limit has passed without a heartbeat
//	tooldeadline.stalled          the process was found to have been stopped
//	tooldeadline.would_stop       a limit that is only observed has fired; error.type says which
//	tooldeadline.abandoned        the function has not returned within the grace
//
// # Metrics
//
//	gen_ai.execute_tool.duration       histogram, s
//	mcp.server.operation.duration      histogram, s, of the calls that a server has received
//	tooldeadline.tool.longest_silence  histogram, s: which idle limit would do
//	tooldeadline.tool.running          up-down counter, {execution}
//	tooldeadline.tool.abandoned        counter, {execution}
//	tooldeadline.tool.would_stop       counter, {execution}: limits that are only observed
//
// The first two have the names, the attributes and the buckets of the convention, which is not
// stable yet. The attributes of all are gen_ai.tool.name and, but for running and abandoned,
// error.type: in would_stop that of the first limit that fired. The second has mcp.method.name
// and gen_ai.operation.name as well.
//
// A client can call tools that do not exist, by any name. So the first 500 names of at most
// 128 bytes are told apart, and all further ones are "_OTHER" in metrics and in names of spans.
//
// # Guarantees
//
//  1. Each span that begins ends, when the outcome is known; each execution that is counted as
//     running is counted off then. That holds after stop as well, and for those abandoned.
//  2. The duration in the metrics is that of the span, to the nanosecond. The grace is part of it.
//  3. A call is one span and one measurement, also where mcpsdk.Middleware and mcpsdk.Handler both
//     supervise it.
//  4. error.type is one of the values above, and the attributes of metrics have a bounded
//     number of values, whatever clients send.
//  5. Arguments, results and details of heartbeats are not reported. The text of an error is.
//  6. No goroutine is started, and nothing is left behind when an execution has ended.
package oteltimeout

// Package oteltimeout reports executions to OpenTelemetry: tools and commands as spans and metrics, and the outcome
// of an HTTP request on the request's existing span.
//
// One line reports all executions of the process to the global providers:
//
//	stop, err := oteltimeout.Watch(oteltimeout.Options{})
//
// [Hooks] returns hooks that report only the executions to which they are passed:
//
//	hooks, err := oteltimeout.Hooks(oteltimeout.Options{})
//	...
//	mcpsdk.Install(server, &mcpsdk.Options{Policy: policy, Hooks: hooks})
//
// The [timeout.Operation] of an execution determines how it is reported. Tools and commands need a name (see
// [timeout.WithName]); the packages of this repository give them a name. Requests that a client sends through package
// request or an adapter are not reported, because the server reports them.
//
// # Spans
//
// The span of a tool has the name "execute_tool {tool}" and the kind INTERNAL.
//
// If a server of progress/mcpsdk, progress/mcpgo or progress/toolcall has received the call of the tool, the span is
// a server span instead, as the convention for MCP demands, with the name "tools/call {tool}" and the kind SERVER. It
// continues the trace context in the request's _meta, which a client adds with [Inject], and links to the span of the
// context, such as that of the HTTP request.
//
// The span of a command has the name of the program and the kind CLIENT, as the convention for a
// program that calls another one demands.
//
// The function's context carries the span, so spans that the function starts are its children.
//
// A handler of package httptimeout gets no span of its own. The span of an HTTP request belongs to the
// instrumentation of the server, such as otelhttp, and a second span would only repeat it. The outcome of the limits
// is recorded on that span, so the instrumentation must wrap the limits. The instrumentation, and not this package,
// reads the trace context from the request's headers:
//
//	handler := otelhttp.NewHandler(&httptimeout.Handler{Handler: mux, Limits: &limits}, "")
//
// The attributes:
//
//	gen_ai.operation.name         execute_tool, of tools
//	gen_ai.tool.name              the tool
//	mcp.method.name               tools/call, of a server's span
//	jsonrpc.request.id            the id of the request, of a server's span
//	mcp.session.id                the session, of a server's span, where the transport has sessions
//	process.executable.name       the command
//	process.exit.code             of a command that ended by itself, not by a signal
//	error.type                    how the execution failed, if it did:
//	    idle_timeout              no heartbeat for the idle limit
//	    total_timeout             the total limit or the caller's deadline was reached
//	    aborted                   the caller has cancelled it
//	    panic                     the function has panicked
//	    goexit                    the function has called runtime.Goexit
//	    tool_error                the tool has returned an error
//	    command_error             the command has ended with a code other than 0 or by a signal,
//	                              or could not be started
//	    waiting_for_input, stopped_by_the_terminal, out_of_memory, too_much_output
//	                              the command was stopped for that, see package procgroup
//	tooldeadline.abort.cause      why a call was aborted, as toolcall.CauseOf says: client_timeout,
//	                              person, disconnected, session_ended, shutdown or client
//	tooldeadline.limit.total      the limits as enforced, in seconds; absent if there is none
//	tooldeadline.limit.idle
//	tooldeadline.beats            the number of heartbeats
//	tooldeadline.longest_silence  the longest time without a heartbeat, in seconds
//
// error.type describes only the execution of the span. If a tool returns the timeout of a step or a command that it
// ran, the tool has returned an error, and the step or the command has timed out.
//
// The status of a failed execution is Error, with the text of the error. otelhttp sets the status of a
// response that was sent, and none if the response was cut; error.type is set in both cases.
//
// The events of a span, including the span of an HTTP request:
//
//	tooldeadline.near_idle        80 % of the idle limit has passed without a heartbeat
//	tooldeadline.stalled          the process was found to have been stopped
//	tooldeadline.closing          no more than the reserve is left, or the server is about to end
//	tooldeadline.would_stop       a limit that is only observed has fired; error.type says which
//	tooldeadline.abandoned        the function has not returned within the grace
//
// # Metrics
//
//	gen_ai.execute_tool.duration            histogram, s, of tools
//	mcp.server.operation.duration           histogram, s, of the calls that a server has received
//	tooldeadline.command.duration           histogram, s, of commands
//	tooldeadline.execution.longest_silence  histogram, s: shows which idle limit would suffice
//	tooldeadline.execution.running          up-down counter, {execution}
//	tooldeadline.execution.abandoned        counter, {execution}
//	tooldeadline.execution.would_stop       counter, {execution}: limits that are only observed
//
// The first two have the names, the attributes and the buckets of the convention, which is not stable yet. otelhttp
// records http.server.request.duration, except for responses that were cut, which it treats as panics.
//
// The attributes identify the operation: gen_ai.tool.name for a tool, process.executable.name for a command,
// http.request.method and http.route for a handler. A handler that wraps a whole mux has neither, because the mux
// finds the route only later; the span and the metric of otelhttp have it. All metrics except running and abandoned
// also have error.type; in would_stop it is that of the first limit that fired. The durations and longest_silence
// also have tooldeadline.abort.cause. The second metric also has mcp.method.name and gen_ai.operation.name. No
// metric has the ids of requests and sessions.
//
// A client can call tools that do not exist, by any name. So only the first 500 names of at most
// 128 bytes are distinguished; all others are "_OTHER" in metrics and in names of spans.
//
// # Guarantees
//
//  1. Every span ends when the outcome is known, and the execution is then no longer counted as
//     running. This holds for abandoned executions too, and after stop.
//  2. The duration in the metrics is the duration of the span, to the nanosecond, and includes the grace.
//  3. A call is one span and one measurement, even if mcpsdk.Install and mcpsdk.Handler both
//     supervise it. The call has timed out if the limits of either stopped it.
//  4. error.type is one of the values above or _OTHER, and the attributes of metrics have a bounded number of values,
//     whatever clients send. An attribute of a span that a client can choose has at most 128 bytes.
//  5. Arguments, results and details of heartbeats are not reported. The texts of errors are.
//  6. No goroutine is started, and nothing remains when an execution has ended.
//  7. The scope of spans and metrics has this package's path and the module's version, which is
//     "(devel)" if the program was built from a directory.
package oteltimeout

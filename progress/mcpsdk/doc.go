// Package mcpsdk puts tool execution deadlines into servers and clients of the
// official Go SDK for MCP.
//
// # Servers
//
// One line sets for every tool of a server an idle limit, which progress renews, and a total:
//
//	mcpsdk.Install(server, &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}})
//
// A tool says that it lives with [progress.Report], or with package heartbeat:
//
//	progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
//
// [Handler] does the same for one typed tool, and [SetResult] shapes a result by hand. [Serve]
// takes the place of server.Run, and ends in order: the client has its answers before the
// connection is closed.
//
// Over HTTP, put [WrapHTTP] around the SDK's handler, and let sessions outlive the tools that
// they carry. The default limits of a server that nobody has configured are 30 min and 2 min:
//
//	limits, _, err := timeout.FromEnv(nil)
//	...
//	options := &mcp.StreamableHTTPOptions{SessionTimeout: limits.SessionTimeout()}
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
//
// A [toolcall.Drain] ends such a server in order.
//
// # Calls that outlive their answer
//
// [WithTasks] answers a call that takes long with a task, for clients that can take one, and
// [WithContinuation] with an ordinary result that says how to wait for the rest, for all others.
// Either way the same function runs on, under the same limits. [WithDeclaredLimits] has the server say
// beforehand how long its tools may take.
//
// # What reaches the server
//
// Whether the end of a call at the client also stops the tool is up to the transport. Where it
// does not, the limits do.
//
//	                                 the client cancels   the client goes away
//	stdio, in-memory                 stops                stops
//	SSE                              stops                stops, with WrapHTTP
//	Streamable HTTP, stateful        stops                runs on, as it may come back, until
//	                                                      the session ends, with WrapHTTP
//	  stateless, before 2026-07-28   stops, with WrapHTTP, if the client hangs up too
//	  stateless, 2026-07-28          stops, with WrapHTTP or PropagateRequestCancellation
//
// Progress has no way to the client in JSON responses of a stateless server. A call that was
// cancelled is answered by the SDK all the same, with the result of an abort, which a client
// ignores.
//
// # Asking a person
//
// A tool that returns its question works with every protocol:
//
//	answer, ok := req.Params.InputResponses["approve"].(*mcp.ElicitResult)
//	if !ok {
//		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"approve": question}}, nil, nil
//	}
//
// With a client of 2026-07-28 the call is over with the question, and the client calls again
// with the answer: no server waits, and no limit of the server runs while the person thinks. With
// an older client the SDK asks while the call goes on and then calls the tool again, once: the
// idle check is held meanwhile, there is keep-alive progress, and [WithAwait] has the limits for
// the answer. [WithRequests] does the same for what is asked of the client's model, or of the
// client itself, under limits of its own. ServerSession.Elicit is for servers whose clients are all older; from
// 2026-07-28 on it fails at once.
//
// At the client, heartbeat.Hold in an ElicitationHandler holds the Timeout of the call that asks
// with 2026-07-28 alone, see [Limit]. Before that, the keep-alive progress of the server renews it
// where ResetOnProgress is on.
//
// # Clients that do not go on
//
// Limits bound tools, and not what a client leaves behind over HTTP. Set a ReadTimeout in
// http.Server, so that a request which never arrives whole is given up, and an IdleTimeout, but
// no WriteTimeout, which would cut long calls off. A session lasts for the SDK's SessionTimeout
// after its last request, so who opens many and leaves costs as much memory as there are:
// where clients cannot be trusted, bound their number in a middleware, as sessions.go of
// examples/mcpserver does, or be stateless.
//
// # Guarantees
//
// Of a server with [Install]:
//
//  1. Every tools/call is answered at the latest a grace after its limit, even if the
//     tool ignores its context; what is in flight to the client adds 200 ms at the most.
//  2. A tool that was stopped, panicked or failed has a result whose isError is true,
//     with the documented text, what the tool had, and an Outcome in _meta if it was
//     stopped; never a JSON-RPC error, unless the tool itself returns one as a
//     *jsonrpc.Error.
//  3. The progress of a call with a progress token is sent with it, exactly as it came;
//     integers above 2^53 need [WrapTransport] or [WrapHTTP]. Nothing else is ever sent
//     about it, and nothing after the result.
//  4. While a tool waits for a person in ServerSession.Elicit, or the SDK does so on
//     behalf of its InputRequests, the idle check is held, the client hears every 10 s
//     what is being waited for, and after 30 s, or 120 s where the call has a progress
//     token, the answer is the text of [progress.ErrNoAnswer].
//  5. A request has a say in its limits only where an option allows it, and never
//     beyond the tool's ceiling.
//  6. Results and params that tools share between calls are not written to, but for a restored
//     token in a request's own _meta.
//  7. When the server ends by [Serve] or [toolcall.Drain], calls are answered before their
//     connections are closed, within the bound.
//  8. A call is answered with its result or with a handle, never both: the handle comes at the
//     soft limit and not before, and only to a client that can take it. What ends the request does
//     not end the tool from then on.
//  9. Nothing is left behind when a call has been answered, but the goroutine of a tool
//     that has not returned.
package mcpsdk

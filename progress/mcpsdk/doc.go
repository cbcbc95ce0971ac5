// Package mcpsdk puts tool execution deadlines into servers and clients of the
// official Go SDK for MCP.
//
// # Servers
//
// One line gives every tool of a server an idle limit, which progress renews, and a total:
//
//	mcpsdk.Install(server, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
//
// A tool shows that it is alive with [progress.Report], or with package heartbeat:
//
//	progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
//
// [Handler] does the same for one typed tool, and [SetResult] makes a result by hand. [Serve]
// replaces server.Run, and shuts down in order: the client gets its answers before the
// connection is closed.
//
// Over HTTP, put [WrapHTTP] around the SDK's handler, and let sessions outlive the tools that run
// in them. Without a configuration, the limits are a total of 30 min and an idle limit of 2 min:
//
//	limits, _, err := timeout.FromEnv(nil)
//	...
//	options := &mcp.StreamableHTTPOptions{SessionTimeout: limits.SessionTimeout()}
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
//
// A [toolcall.Drain] ends such a server in order. A client that is not authorised to end a session must not reach
// WrapHTTP with a DELETE. A client of protocol 2026-07-28 cancels a call by disconnecting, so a server without WrapHTTP
// should set PropagateRequestCancellation in mcp.StreamableHTTPOptions.
//
// # Calls that outlive their answer
//
// With Tasks among its [Options], a server answers a long call of a client that supports tasks with a task. With
// Continuation, any other client gets an ordinary result that says how to wait for the rest. Either way the same function
// runs on, under the same limits, even if its connection is lost. With Declare the server says beforehand how long its
// tools may take.
//
//	tasks := new(task.Tasks)
//	defer tasks.Close()
//	p := &policy.Policy{Tools: map[string]policy.Tool{"build": {Soft: 30 * time.Second}}}
//	mcpsdk.Install(server, &mcpsdk.Options{Policy: p, Tasks: tasks, Continuation: &mcpsdk.Continuation{After: 45 * time.Second}})
//
// With protocol 2026-07-28 a client gets tasks if it declares io.modelcontextprotocol/tasks among its extensions. With
// 2025-11-25 it asks for a task in the call, which the SDK does not see, so the server needs [Serve], [WrapTransport]
// or [WrapHTTP]; without these it offers no tools as tasks to such clients. Over SSE the SDK accepts no tasks/*
// methods. Progress and questions of a task reach an HTTP client of 2025-11-25 on its GET stream, or while it waits for
// the result. A client of 2026-07-28 sees the newest message when it asks for the task, and questions as InputRequests;
// the tool is called again with the answers.
//
// # Clients
//
// [Limit] gives each request of a client a limit, and [Connect] connects it, and tries again:
//
//	mcpsdk.Limit(client, nil)
//	session, err := mcpsdk.Connect(ctx, client, open, nil)
//
// The reason of the notifications/cancelled of a request that times out names the limit: "timeout of 60 s without
// progress". Over Streamable HTTP with protocol 2026-07-28 the end of the stream is the cancellation, which has no
// reason; a stateless server of the SDK stops its work only then, and only if its PropagateRequestCancellation is set.
// There is no reason either if a sending middleware that was added before Limit passes a context on that is not derived
// from the one it got.
//
// A client with FollowTasks among its [request.Options] waits for a task as if the call had just taken longer, if its
// transport is wrapped with [WrapClientTransport]:
//
//	mcpsdk.Limit(client, &request.Options{FollowTasks: true})
//	session, err := client.Connect(ctx, mcpsdk.WrapClientTransport(transport), nil)
//
// The limits are those of each request, and only the caller's context bounds the call as a whole; when it ends, the
// task is cancelled. Questions of the task go to the handlers of the client. With 2025-11-25 a tool is called as a task
// if the server has the capability and lists the tool with a taskSupport of "optional" or "required"; a client that has
// not listed the tools lists them before the first call. A server of 2025-11-25 may send notifications with the status
// of the task; it is asked only if none has come for its interval, or if it keeps the task for less than that. A
// request for a task that is not answered, or with a status of 500, 502, 503, 504 or 429, or with the code -32603, is
// made again, with waits of up to 10 s, for as long as the server keeps the task or, if it has not said how long, for
// 10 min. Any other error ends the call. If the task has failed, the error is the JSON-RPC error with which it failed;
// if another client has cancelled it, errors.Is finds [task.ErrCancelled].
//
// # What reaches the server
//
// It depends on the transport whether the end of a call at the client also stops the tool. Where it
// does not, the limits of the tool do.
//
//	                                 the client cancels   the client goes away
//	stdio, in-memory                 stops                stops
//	SSE                              stops                stops, with WrapHTTP
//	Streamable HTTP, stateful        stops                runs on, as it may come back, until
//	                                                      the session ends, with WrapHTTP
//	  stateless, before 2026-07-28   stops, with WrapHTTP, if the client hangs up too
//	  stateless, 2026-07-28          stops, with WrapHTTP or PropagateRequestCancellation
//
// A stateless server that answers in JSON cannot send progress. The SDK also answers a call that
// was cancelled, with the result of an abort, which a client ignores.
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
// With a client of 2026-07-28 the call ends with the question, and the client calls again with the
// answer: no limit of the server runs while the person thinks. With an older client the SDK asks
// during the call and then calls the tool again, once. Meanwhile the idle check is held, the client
// gets keep-alive progress, and Await among the [Options] limits the wait. Requests does the same, with
// separate limits, for requests to the client's model, or to the client itself.
// ServerSession.Elicit is for servers whose clients are all older; from 2026-07-28 on it fails at
// once.
//
// At the client, heartbeat.Hold in an ElicitationHandler holds the Timeout of the call that asks,
// but only with 2026-07-28; see [Limit]. Before that, the keep-alive progress of the server renews
// the Timeout if ResetOnProgress is set.
//
// # Clients that do not go on
//
// The limits bound tools, and not the requests and sessions that a client abandons over HTTP. Set a
// ReadTimeout in http.Server, so that a request that never arrives whole is given up, and an
// IdleTimeout, but no WriteTimeout, which would cut long calls off. A session lasts for the SDK's
// SessionTimeout after its last request, so a client that opens and abandons many sessions ties up
// memory for each. If clients cannot be trusted, bound the number of sessions in a middleware, as
// sessions.go of examples/mcpserver does, or be stateless.
//
// # Guarantees
//
// Of a server with [Install]:
//
//  1. Every tools/call is answered at the latest a grace after its limit, even if the tool ignores
//     its context; a notification that is being sent adds at most 200 ms.
//  2. A tool that was stopped, panicked or failed has a result whose isError is true,
//     with the documented text, the tool's partial output, and an Outcome in _meta if it was
//     stopped; never a JSON-RPC error, unless the tool itself returns a *jsonrpc.Error.
//  3. The progress of a call is sent with the progress token of its request, exactly as it came;
//     integers above 2^53 need [WrapTransport] or [WrapHTTP]. Nothing is sent without a token, and
//     nothing after the result.
//  4. While a tool waits for a person in ServerSession.Elicit, or the SDK does so on behalf of its
//     InputRequests, the idle check is held, the client gets an update every 10 s that says what
//     the tool waits for, and if nobody answers within 30 s, or 120 s if the call has a progress
//     token, the tool gets [progress.ErrNoAnswer].
//  5. A request can change its limits only if an option allows it, and never beyond the tool's
//     MaxTotal. A client that says how long it waits is answered before that.
//  6. Results and params that tools share between calls are not written to, except for a
//     restored token in a request's own _meta.
//  7. When [Serve] or [toolcall.Drain] ends the server, calls are answered before their
//     connections are closed, within the bound.
//  8. A call is answered with its result or with a handle, never both: the handle comes at the soft
//     limit and not before, and only to a client that supports tasks, or as a continuation. From
//     then on the end of the request does not end the tool.
//  9. Nothing is left behind when a call has been answered, except the goroutine of a tool
//     that has not returned.
package mcpsdk

// Package mcpgo puts tool execution deadlines into servers and clients of mcp-go,
// github.com/mark3labs/mcp-go.
//
// A server gets limits and progress notifications for all of its tools in one line:
//
//	s := server.NewMCPServer("files", "1.0.0")
//	mcpgo.Install(s, &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}})
//	mcpgo.Serve(ctx, server.NewStdioServer(s), os.Stdin, os.Stdout, 0)
//
// [Serve] takes the place of server.ServeStdio, and ends in order: the client has its answers
// before it returns. Over HTTP, put [WrapHTTP] around mcp-go's handler; a [toolcall.Drain] ends
// such a server in order:
//
//	http.ListenAndServe(addr, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
//
// A tool beats, or reports, through its context, and knows nothing of either:
//
//	progress.Report(ctx, progress.Update{Progress: done, Total: all, Message: file})
//
// A client gets a limit for each request, renewed by progress where that is wanted:
//
//	t := transport.NewStdio("files-server", nil)
//	c := client.NewClient(mcpgo.Limit(t, mcpgo.ClientLimits{Timeout: request.DefaultTimeout}, request.DefaultLimits()))
//
// [Connect] starts a client with limits, and tries again; [Retry] sends requests again that
// only read. With [WithDeclaredLimits] a server says how long its tools may take, and with
// [UseDeclared] a client waits that long.
//
// # Asking a person
//
// A tool that needs an answer returns the question, with server.InputRequestBuilder, and is
// called again with the answer, which server.ElicitationResponse finds. That works with clients
// of all protocols. Before 2026-07-28 the adapter asks while the call runs: the idle check is
// held, the client hears every 10 s what is being waited for, and after 30 s, or 120 s where the call
// has a progress token ([WithAwait]), the answer is the text of [progress.ErrNoAnswer]. From then on the client asks between two calls of
// the tool, and no limit of the server runs.
//
// [Elicit] asks from within a tool, and works with clients before 2026-07-28 only. So does [Sample],
// which asks the client's model.
//
// # Calls that take longer than a client waits
//
// With [WithTasks], a call that reaches the soft limit of its tool is answered with a task, and
// the tool runs on, under the same limits; the client fetches the result. Clients of 2026-07-28 have
// to declare io.modelcontextprotocol/tasks for that, and those of 2025-11-25 to ask for a task with
// the call. With [WithContinuation], all others get an ordinary result in time that says how to wait
// for the rest: the model reads it.
//
//	tasks := task.New()
//	defer tasks.Close()
//	p := &policy.Policy{Tools: map[string]policy.Tool{"index": {Soft: 30 * time.Second}}}
//	mcpgo.Install(s, p, mcpgo.WithTasks(tasks), mcpgo.WithContinuation(45*time.Second))
//
// A client whose transport has [FollowTasks] takes such tasks, and its CallTool takes longer.
//
// # What mcp-go does not allow
//
// These hold for mcp-go v1.2.1.
//
//   - Over stdio without [Serve], and to a client in the same process, a progress notification
//     can come after the result.
//   - Over Streamable HTTP without [WrapHTTP], and with server.WithEventStore, the requests of a
//     session, which protocol 2025-11-25 has, share one queue of notifications. One may go out on
//     the stream of another request of the session, or on the standalone stream, and so after its
//     result, or after one that was sent later. Each has its token, so clients of mcp-go are not
//     confused.
//   - Without Serve or WrapHTTP that queue has 100 places, and what does not fit is dropped; the
//     next update brings what is new.
//   - A notification that is dropped because its call has been answered is an error to mcp-go,
//     which over stdio and Streamable HTTP it logs.
//   - A cancelled request is answered all the same.
//   - RequestElicitation cannot be intercepted. Use [Elicit], or else heartbeat.Hold. Without
//     Serve or WrapHTTP, its question stays open at the client when nobody waits any more.
//   - What a tool asks for along with sampling or roots is asked by mcp-go, when the execution
//     has ended, under no limit.
//   - Over SSE, an answer that has not been written when a [toolcall.Drain] ends is lost.
//   - Its own tasks are not what the protocols want: a task's context is cancelled when the client
//     has the handle, which [Middleware] mends, and those of 2026-07-28 it does not have. Those of
//     [WithTasks] need [Serve] or [WrapHTTP], over SSE too: without them calls stay plain.
//   - Before 2026-07-28 a task cannot ask a person over SSE, and over Streamable HTTP only where
//     there are sessions, on the stream of a GET or of a tasks/result.
//   - notifications/tasks of 2026-07-28 is not sent: subscriptions/listen has no place for it. Log
//     messages of a tool go out as ever, also when its call has become a task.
//   - The result of a task is not validated against the tool's output schema.
//   - Over stdio a tasks/result that the client has cancelled waits for the task all the same.
//   - Over SSE and stdio, the context of a client's handler of elicitations or of sampling is
//     not that of a request, so heartbeat.Hold in it holds no limit of the client's.
//
// # Clients that do not go on
//
// Limits bound tools, and not what a client leaves behind over HTTP. Set a ReadTimeout in
// http.Server, so that a request which never arrives whole is given up, and an IdleTimeout, but
// no WriteTimeout, which would cut long calls off. What a stateful server keeps of a session that
// sends no DELETE it keeps for good, unless server.WithSessionIdleTTL says for how long. That
// counts from the beginning of the session's last request: a call that takes longer is answered,
// but the request after it finds the session terminated. Let it be longer than the longest call.
//
// # Guarantees
//
//  1. A tool call ends at the latest at its limit and the grace after that, whatever the
//     tool does, and a worker of a stdio server is free again.
//  2. A call that was stopped is answered with a result whose IsError is true, with the
//     message of its [timeout.Error], what the tool returned, and a [toolcall.Outcome] in
//     _meta. So is a call whose tool has panicked, or whose timeoutMs makes no sense. The
//     tool's own errors are left as they are.
//  3. Progress goes out only where the request has a token, which comes back as it came,
//     at most once per interval, and strictly increases. A token that mcp-go has not kept
//     exactly is not sent; with [Install] it is.
//  4. Nothing is written about a call after its result, with [Serve] and [WrapHTTP]; and
//     otherwise but for what is said above.
//  5. A client that does not read delays no tool and no limit, and an answer by 300 ms at
//     the most.
//  6. A tool is stopped when its client cancels, or has gone; over SSE with [Install] alone.
//  7. A client's request ends at its limit, or 250 ms after it where the transport is
//     stuck, with an error of code -32001, and the server gets a cancellation.
//  8. Progress renews the Timeout of its own request and of no other; no handler delays
//     that, until 1000 notifications wait for a slow one.
//  9. A tools/call is never sent twice, unless the caller has asked [Retry] for it and the tool says
//     that it may be.
//  10. What a wrapped transport can do, the wrapper can, and no more.
//  11. A call that has become a task or a continuation has been called once, and runs under the
//     limits that it had. Its client gets the handle or the result, and never both; after the
//     handle no disconnect ends it.
//  12. No client gets a handle that has not said that it can take one.
//  13. When the server ends by Serve, or by a toolcall.Drain around WrapHTTP, every call that has
//     come is answered before the connection is closed, within the bound.
package mcpgo

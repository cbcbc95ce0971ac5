// Package mcpgo puts tool execution deadlines into servers and clients of mcp-go,
// github.com/mark3labs/mcp-go.
//
// A server gets limits and progress notifications for all of its tools in one line:
//
//	s := server.NewMCPServer("files", "1.0.0")
//	mcpgo.Install(s, &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}})
//	mcpgo.Serve(ctx, server.NewStdioServer(s), os.Stdin, os.Stdout, 0)
//
// [Serve] replaces server.ServeStdio, and shuts down in order: the client gets its answers
// before Serve returns. Over HTTP, put [WrapHTTP] around mcp-go's handler; a [toolcall.Drain] shuts
// such a server down in order:
//
//	http.ListenAndServe(addr, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
//
// A tool beats or reports its progress through its context, and does not need this package for
// that:
//
//	progress.Report(ctx, progress.Update{Progress: done, Total: all, Message: file})
//
// A client gets a limit for each request, which progress can renew:
//
//	t := transport.NewStdio("files-server", nil)
//	c := client.NewClient(mcpgo.Limit(t, mcpgo.ClientLimits{Timeout: request.DefaultTimeout}, request.DefaultLimits()))
//
// [Connect] starts a client with limits, and tries again; [Retry] repeats requests that only
// read. With [WithDeclaredLimits] a server says how long its tools may take, and with
// [UseDeclared] a client waits that long.
//
// # Asking a person
//
// A tool that needs an answer returns the question, with server.InputRequestBuilder, and is called
// again with the answer, which server.ElicitationResponse finds. That works with clients of all
// protocols. Before 2026-07-28 the adapter asks while the call runs: the idle check is held, and the
// client gets an update every 10 s that says what the tool waits for. If nobody answers within 30 s,
// or 120 s if the call has a progress token (see [WithAwait]), the client gets the text of
// [progress.ErrNoAnswer]. From 2026-07-28 on the client asks between two calls of the tool, and no
// limit of the server runs.
//
// [Elicit] asks from within a tool, and works only with clients before 2026-07-28. [Sample], which
// asks the client's model, also works only with those.
//
// # Calls that take longer than a client waits
//
// With [WithTasks], a call that reaches the soft limit of its tool is answered with a task, and
// the tool runs on, under the same limits; the client fetches the result. Clients of 2026-07-28 have
// to declare io.modelcontextprotocol/tasks for that, and those of 2025-11-25 have to ask for a task
// in the call. With [WithContinuation], all others get an ordinary result in time, which tells the
// model how to wait for the rest.
//
//	tasks := new(task.Tasks)
//	defer tasks.Close()
//	p := &policy.Policy{Tools: map[string]policy.Tool{"index": {Soft: 30 * time.Second}}}
//	mcpgo.Install(s, p, mcpgo.WithTasks(tasks), mcpgo.WithContinuation(45*time.Second))
//
// A client whose transport has [FollowTasks] supports such tasks: its CallTool waits for the
// result.
//
// # What mcp-go does not allow
//
// These hold for mcp-go v1.2.1.
//
//   - Over stdio without [Serve], and to a client in the same process, a progress notification
//     can come after the result.
//   - Over Streamable HTTP without [WrapHTTP], and with server.WithEventStore, the requests of a
//     session, which protocol 2025-11-25 has, share one queue of notifications. A notification may
//     be sent on the stream of another request of the session, or on the standalone stream, and so
//     after the result of its call, or out of order. Each has its token, so clients of mcp-go are
//     not confused. If that other request is just ending, the notification may be lost.
//   - Without Serve or WrapHTTP that queue has 100 places, and notifications that do not fit are
//     dropped; the next update brings what is new.
//   - A notification that is dropped because its call has been answered is an error to mcp-go,
//     which it logs over stdio.
//   - A cancelled request is answered too.
//   - RequestElicitation cannot be intercepted. Use [Elicit], or else heartbeat.Hold. Without
//     Serve or WrapHTTP, its question stays open at the client when the tool no longer waits.
//   - If a tool returns requests for sampling or roots, mcp-go sends them, and all that were
//     returned with them, after the execution has ended and under no limit.
//   - Over SSE, and over stdio without [Serve], a cancellation is lost if it comes before mcp-go has begun
//     with the call: over SSE it can overtake the call, over stdio the call can wait for a worker. The
//     tool then runs to its limit.
//   - Over SSE, an answer that has not been written when a [toolcall.Drain] ends is lost.
//   - mcp-go's own tasks do not follow the protocols: the context of a task is cancelled when the
//     client has the handle, which [Middleware] corrects, and there are none of 2026-07-28. The
//     tasks of [WithTasks] need [Serve] or [WrapHTTP], over SSE too: without these, a call gets no
//     task.
//   - Before 2026-07-28 a task cannot ask a person over SSE. Over Streamable HTTP it can only if
//     there are sessions, on the stream of a GET or of a tasks/result.
//   - notifications/tasks of 2026-07-28 is not sent: subscriptions/listen has no place for it. Log
//     messages of a tool are sent as before, even when its call has become a task.
//   - The result of a task is not validated against the tool's output schema.
//   - Over stdio a tasks/result that the client has cancelled still waits for the task.
//   - Over SSE and stdio, the context of a client's handler of elicitations or of sampling is not
//     that of a request, so heartbeat.Hold in it holds no limit of the client.
//
// # Clients that do not go on
//
// The limits bound tools, and not the requests and sessions that a client abandons over HTTP. Set a
// ReadTimeout in http.Server, so that a request that never arrives whole is given up, and an
// IdleTimeout, but no WriteTimeout, which would cut long calls off. A stateful server keeps a
// session for ever if its client sends no DELETE, unless server.WithSessionIdleTTL sets a limit.
// That limit counts from the beginning of the session's last request: a call that takes longer is
// answered, but the request after it finds the session terminated. Set the limit to more than the
// longest call takes.
//
// # Guarantees
//
//  1. A tool call ends at the latest at its limit and the grace after that, whatever the
//     tool does, and a worker of a stdio server is free again.
//  2. A call that was stopped is answered with a result whose IsError is true, with the
//     message of its [timeout.Error], what the tool returned, and a [toolcall.Outcome] in
//     _meta. So is a call whose tool has panicked, or whose timeoutMs is not valid. The
//     tool's own errors are not changed.
//  3. Progress is sent only if the request has a token, which is returned unchanged, at most
//     once per interval, and it strictly increases. A token that mcp-go has not kept exactly
//     is not sent; [Install] restores it.
//  4. With [Serve] and [WrapHTTP], nothing is written about a call after its result; without
//     them, this holds with the exceptions above.
//  5. A client that does not read delays no tool and no limit. It delays an answer by at most 300
//     ms.
//  6. A tool is stopped when its client cancels, or has gone; over SSE only with [Install], and with the
//     exception above.
//  7. A client's request ends at its limit, or 250 ms after that if the transport is stuck, with an
//     error of code -32001, and the server gets a cancellation.
//  8. Progress renews the Timeout of the request that it belongs to, and of no other. A slow
//     handler does not delay the renewal unless 1000 notifications wait for it.
//  9. A tools/call is never sent twice, unless the caller has asked [Retry] for it and the tool says
//     that calls of it may be repeated.
//  10. A wrapped transport implements the same interfaces as the transport inside.
//  11. The tool of a call that has become a task or a continuation is called once, and keeps its
//     limits. Its client gets the handle or the result, and never both; after the handle no
//     disconnect ends it.
//  12. A client gets the handle of a task only if it has declared that it supports tasks.
//  13. When Serve, or a toolcall.Drain around WrapHTTP, ends the server, every call that has come
//     is answered before the connection is closed, within the bound.
package mcpgo

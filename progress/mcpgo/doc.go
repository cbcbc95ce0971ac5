// Package mcpgo puts tool execution deadlines into servers and clients of mcp-go,
// github.com/mark3labs/mcp-go.
//
// A server gets limits and progress notifications for all of its tools in one line:
//
//	s := server.NewMCPServer("files", "1.0.0")
//	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
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
//	c := client.NewClient(mcpgo.Limit(t, nil))
//
// [Connect] starts a client with limits, and tries again. With Declare among its [Options] a server says how long its
// tools may take, and with Declared among its [request.Options] a client waits that long.
//
// Over Streamable HTTP the stream of a request that times out is closed. Over the other transports, and over Streamable
// HTTP if the server keeps a session, a notifications/cancelled is sent, whose reason names the limit: "timeout of 60 s
// without progress". If the caller cancels a request that has limits, Limit does the same where mcp-go does not, which
// is over SSE and Streamable HTTP. In mcp-go a slow handler delays everything that comes after it, including the answer
// and every renewal of a limit. With Limit, a handler that takes longer than 20 ms goes on concurrently with the
// client, so it may still run when a call has returned. Handlers are called one after the other, in the order of
// arrival; when 1000 notifications wait, the reader of the transport waits too. A panic of one is reported to Logger
// and Hooks. transport.SSE itself has a limit of 60 s that no progress renews; see transport.WithResponseTimeout.
//
// # Asking a person
//
// A tool that needs an answer returns the question, with server.InputRequestBuilder, and is called
// again with the answer, which server.ElicitationResponse finds. That works with clients of all
// protocols. Before 2026-07-28 the adapter asks while the call runs: the idle check is held, and the
// client gets an update every 10 s that says what the tool waits for. If nobody answers within 30 s,
// or 120 s if the call has a progress token (see Await of [Options]), the client gets the text of
// [progress.ErrNoAnswer]. From 2026-07-28 on the client asks between two calls of the tool, and no
// limit of the server runs.
//
// [Elicit] asks from within a tool, and works only with clients before 2026-07-28. [Sample], which
// asks the client's model, also works only with those.
//
// # Calls that take longer than a client waits
//
// With Tasks among its [Options], a call that reaches the soft limit of its tool is answered with a task, and
// the tool runs on, under the same limits; the client fetches the result. Clients of 2026-07-28 have
// to declare io.modelcontextprotocol/tasks for that, and those of 2025-11-25 have to ask for a task
// in the call. With Continuation, all others get an ordinary result in time, which tells the
// model how to wait for the rest.
//
//	tasks := new(task.Tasks)
//	defer tasks.Close()
//	p := &policy.Policy{Tools: map[string]policy.Tool{"index": {Soft: 30 * time.Second}}}
//	mcpgo.Install(s, &mcpgo.Options{Policy: p, Tasks: tasks, Continuation: &mcpgo.Continuation{After: 45 * time.Second}})
//
// That takes effect under [Serve] and [WrapHTTP]. mcp-go still makes the tasks of tools that were added with
// AddTaskTool, and of tools that have a task support in mcp-go and no soft limit. A tool whose calls may be continued
// lists no output schema, because the result of a call that goes on has no structured content.
//
// The CallTool of a client with FollowTasks among its [request.Options] waits for the result of a task, under the limits
// of the call. The progress of the task reaches the client as progress of the call, if the call has a token, and renews
// the Timeout. When the caller gives up, the task is cancelled. With 2025-11-25 a tool is called as a task if the
// server has the capability and lists the tool with a taskSupport of "optional" or "required"; a client that has not
// listed the tools lists them before the first call. A server of 2025-11-25 may send notifications with the status of
// the task, over Streamable HTTP to a client that listens; it is then asked only if none has come for its interval. A
// request for a task that is not answered, or with a status of 500, 502, 503, 504 or 429, or with the code -32603, is
// sent again, with waits of up to 10 s, for as long as the server keeps the task or, if it has not said how long, for
// 10 min. Any other error ends the call. The tasks that mcp-go's own server offers in 2025-11-25 end, in v1.2.1, as
// soon as the client has the handle: do not follow those.
//
// # What mcp-go does not allow
//
// Some promises have exceptions that mcp-go v1.2.1 leaves no way around, most of them without [Serve] and [WrapHTTP].
// They are listed in docs/servers.md of the repository, under "What mcp-go does not allow".
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
//     them, this holds with the exceptions of docs/servers.md.
//  5. A client that does not read delays no tool and no limit. It delays an answer by at most 300
//     ms.
//  6. A tool is stopped when its client cancels, or has gone; over SSE only with [Install], and with the
//     exceptions of docs/servers.md.
//  7. A client's request ends at its limit, or 250 ms after that if the transport is stuck, with an
//     error of code -32001, and the server gets a cancellation.
//  8. Progress renews the Timeout of the request that it belongs to, and of no other. A slow
//     handler does not delay the renewal unless 1000 notifications wait for it.
//  9. A tools/call is never sent twice, unless Retry of [request.Options] names it and the tool says
//     that calls of it may be repeated.
//  10. A wrapped transport implements the same interfaces as the transport inside.
//  11. The tool of a call that has become a task or a continuation is called once, and keeps its
//     limits. Its client gets the handle or the result, and never both; after the handle no
//     disconnect ends it.
//  12. A client gets the handle of a task only if it has declared that it supports tasks.
//  13. When Serve, or a toolcall.Drain around WrapHTTP, ends the server, every call that has come
//     is answered before the connection is closed, within the bound.
package mcpgo

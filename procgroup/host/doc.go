// Package host ends a program when the host that started it ends. It is for servers that talk to
// their host over stdin and stdout, such as MCP servers.
//
//	ctx, stop := host.Context(context.Background())
//	defer stop()
//	return server.Run(ctx, &mcp.StdioTransport{})
//
// A host that is killed cannot stop its servers. They see the end of their stdin, unless another
// process holds the pipe open too: a wrapper, another server that inherited the descriptor, or the
// server itself. Such a server runs on for ever. [Context] watches the host itself.
//
// # The host
//
// The host is the process at the other end of stdin, if it is an ancestor of this one:
//
//   - On Linux, it is the process that made the socket, or the topmost ancestor that holds the
//     write end of the pipe. If the descriptors of the parent cannot be read, because it runs as
//     another user, the parent counts as the host.
//   - On macOS and Windows, it is the process that made the socket or the named pipe. If that is
//     not an ancestor, it is the nearest ancestor that is not a shell or launcher, such as npx and
//     uvx.
//   - On other systems nothing is watched.
//
// Nothing is watched either if stdin is a terminal, a file or a FIFO, if it comes from another
// command of a pipeline, or if the process that started this one had already ended. [Of] says what is
// watched, or why nothing is. [WithPID] names a host.
//
// # Guarantees
//
//  1. The context is done when the host has ended, whoever holds stdin open, and however many
//     processes are between them.
//  2. A host that goes into the background is not taken for one that has ended: if the host has not
//     been killed by a signal, and a process of the same executable holds the other end of stdin,
//     that process is the host from then on. Linux only; on other systems it counts as the end.
//  3. The context is done when a process between the host and this one has been killed by a
//     signal, as by a host that signals only the shell that it has started. A process between them
//     that ends by itself, or of which the system does not tell how it ended, changes nothing.
//     Linux only; other systems do not tell.
//  4. No other process matters: none above the host, no sibling, and none that gets the process id of
//     one that has ended. A host that is stopped (SIGSTOP) is alive. No clock is read.
//  5. A wait occupies no thread on Linux, and one for each watched process elsewhere. When the
//     context is done, for any reason, its goroutines end and its descriptors are closed.
package host

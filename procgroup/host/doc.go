// Package host ends a program when the host that started it ends. It is for servers that talk to their host over stdin
// and stdout, such as MCP servers.
//
//	ctx, stop := host.Context(context.Background())
//	defer stop()
//	return server.Run(ctx, &mcp.StdioTransport{})
//
// A host that is killed cannot stop its servers. A server then reads the end of its stdin, unless the other end of the
// pipe is held open by a wrapper, by another server that inherited the descriptor, or by the server itself. In that
// case it runs on for ever. [Context] watches the host itself.
//
// # The host
//
// The host is the process at the other end of stdin, if it is an ancestor of this one:
//
//   - On Linux, it is the process that made the socket, or the topmost ancestor that holds the write end of the pipe.
//     If the descriptors of the parent cannot be read, for example because it runs as another user, it counts as the
//     host.
//   - On macOS and Windows, it is the process that made the socket or the named pipe. If that process is not an
//     ancestor or not known, as for every pipe on macOS, the host is the nearest ancestor that is neither a shell nor a
//     launcher such as npx or uvx.
//   - On other systems no process is watched.
//
// No process is watched either if stdin is a terminal or a file, or if the process that started this one had already
// ended; on Linux also if stdin is a FIFO or comes from another command of a pipeline, which macOS and Windows do not
// tell from the pipe of a host. [Of] returns the process that is watched, or says why none is. [ContextOf] takes the
// process id of a host.
//
// # Guarantees
//
//  1. The context is done when the host has ended, even if another process holds stdin open, and however many processes
//     are between the host and this one.
//  2. A host that goes into the background is not taken for one that has ended: if the host has not been killed by a
//     signal, and a process of the same executable holds the other end of stdin, that process is the host from then on.
//     Linux only; on other systems such a host counts as ended.
//  3. The context is done when a process between the host and this one has been killed by a signal, because some hosts
//     signal only the shell that they have started. A process between the two that ends by itself, or in a way that the
//     system does not report, changes nothing. Linux only; other systems do not report such an end.
//  4. No other process matters: none above the host, no sibling, and none that gets the process id of one that has
//     ended. A host that is stopped (SIGSTOP) is alive. No clock is read.
//  5. A wait occupies no thread on Linux, and one for each watched process elsewhere. When the context is done, for any
//     reason, its goroutines end and its descriptors are closed.
package host

// Package progress turns the heartbeat of a tool into MCP progress notifications. It
// knows the wire form and the rules, and no SDK; the packages mcpsdk and mcpgo beneath
// it connect it to one each.
//
// A tool reports, and does not need to know whether anybody listens:
//
//	for i, file := range files {
//		progress.Report(ctx, progress.Update{Progress: float64(i), Total: float64(len(files)), Message: file})
//		search(file)
//	}
//
// A server without an adapter starts the notifications of a call where it starts the
// call, and stops them before it answers; see the example of [Start].
//
// [Await] waits for a person and says so to the client meanwhile. Package toolcall beneath this
// one has the rest of a call: its limits, and what its result says when it was stopped; package
// request has the client's side.
//
// # Guarantees
//
//  1. Without a progress token nothing is sent, and a token is echoed as it came (MCP,
//     Progress).
//  2. The first update goes out at once, and then at most one per interval, the newest. The
//     newest that is left at the end goes out before stop returns.
//  3. Progress strictly increases on the wire. An update that brings no progress goes out
//     with the smallest step that does.
//  4. Nothing is sent after stop has returned, and what was being sent is finished or
//     given up on before it returns.
//  5. A client that does not read, or a notifier that fails, panics or hangs, delays no
//     tool and no limit, and stop by 200 ms at the most. A notification that has just been sent
//     delays it by 5 ms, so that the client takes it before the answer.
//  6. A tool that does not beat sends nothing.
package progress

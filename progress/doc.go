// Package progress turns the heartbeat of a tool into MCP progress notifications. It implements the
// wire form and the rules, and depends on no SDK; the packages mcpsdk and mcpgo connect it to one
// SDK each.
//
// A tool reports its progress. It does not need to know whether anything listens:
//
//	for i, file := range files {
//		progress.Report(ctx, progress.Update{Progress: float64(i), Total: float64(len(files)), Message: file})
//		search(file)
//	}
//
// A server without an adapter starts the notifications of a call when it starts the call, and stops
// them before it answers; see the example of [Start].
//
// [Await] waits for a person and tells the client so; [AwaitReply] waits for any other reply of the
// client. Package toolcall has the rest of a call: its limits, and the result of a call that was
// stopped. Package request has the client's side.
//
// # Guarantees
//
//  1. Nothing is sent without a progress token, and a token is returned unchanged (MCP, Progress).
//  2. The first update is sent at once; after that, at most one update is sent per interval, the
//     newest. An update that is still unsent at the end is sent before stop returns.
//  3. Progress strictly increases on the wire. An update without progress is sent with a step that
//     increases it to the next millionth.
//  4. Nothing is sent after stop has returned. A notification that is being sent is finished or
//     given up before stop returns.
//  5. A client that does not read, or a notifier that fails, panics or hangs, delays no tool and no
//     limit, and delays stop by at most 200 ms. A notification that has just been sent delays stop
//     by 5 ms, so that the client handles it before the answer.
//  6. A tool that does not beat sends nothing.
package progress

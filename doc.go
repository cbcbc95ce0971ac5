// Package tooldeadline is the overview of a library for tool execution deadlines;
// the code is in the packages below it.
//
// Tools run for seconds or for hours. A fixed timeout kills healthy long work and
// lets stuck work sit. So an execution here has two limits: an idle limit that a
// heartbeat renews, and a total that nothing renews. A tool is cancelled only when it
// is stuck or when the hard cap is reached.
//
//   - Package timeout supervises: it runs a function under both limits, returns on
//     time whatever the function does, and says exactly what happened.
//   - Package heartbeat is what the function calls to say that it is making progress.
//     Outside an execution it does nothing, so tool code runs unchanged anywhere.
//   - Package procgroup runs commands: their output is the heartbeat, and their whole
//     process tree is killed at the end.
//   - Package progress shows an MCP client how far a tool has come. Its adapters
//     progress/mcpsdk and progress/mcpgo, each a module of its own, put all of this into
//     the servers and clients of the two Go SDKs with one line. What they share, and what
//     those without an SDK use, is in progress/toolcall, a call as a server sees it, and
//     progress/request, a request as a client sees it.
//   - Package stream finds a stream that has gone silent, and reopens the notification
//     stream of an MCP client.
//
// # Guarantees
//
//  1. An execution has exactly one outcome: the function's own, an idle timeout, a
//     total timeout, or an abort by the caller. The first wins, and everything that
//     reports says the same.
//  2. A limit never fires early, not by a nanosecond. What is late by a timer is not
//     an excuse: a return or a heartbeat at or after the instant at which a limit falls
//     due does not count.
//  3. Run returns at the latest when the grace after a limit is over, even if the
//     function ignores its context. An abandoned function is reported, with its stack.
//  4. What the function returned late is kept: its value as a partial result, its
//     error in the tree of the timeout's.
//  5. A finished execution leaves no goroutine, timer or descriptor behind.
//  6. The library prints nothing, starts nothing before it is used, and logs only to
//     the logger that it was given.
package tooldeadline

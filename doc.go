// Package tooldeadline is the overview of a library for tool execution deadlines. The code is in
// the packages below it.
//
// Tools run for seconds or for hours. A fixed timeout kills healthy long work and lets stuck work
// sit. An execution in this library therefore has two limits: an idle limit, which each heartbeat
// renews, and a total, which nothing renews. A tool is cancelled only when it is stuck or when it
// reaches the total.
//
//   - Package timeout supervises a function. It runs the function under both limits, returns on
//     time whatever the function does, and reports exactly what happened.
//   - Package heartbeat reports the function's progress. Outside an execution it does nothing, so
//     tool code runs unchanged anywhere.
//   - Package procgroup runs commands. Their output is the heartbeat, and their whole process tree
//     is killed at the end.
//   - Package progress shows an MCP client how far a tool has come. Its adapters progress/mcpsdk
//     and progress/mcpgo are modules of their own; each adds all of this to the servers and clients
//     of one Go SDK with one line. The code that the adapters share, for use without an SDK too, is
//     in progress/toolcall (a call as a server sees it) and progress/request (a request as a client
//     sees it).
//   - Package stream detects a stream that has gone silent, and reopens the notification stream of
//     an MCP client.
//
// # Guarantees
//
//  1. An execution has exactly one outcome: the function's own result, an idle timeout, a total
//     timeout, or an abort by the caller. The first one wins, and everything that reports the
//     outcome agrees.
//  2. A limit never fires early, not even by a nanosecond. A late timer is no excuse either: a
//     return or a heartbeat at or after the instant at which a limit falls due does not count.
//  3. Run returns at the latest when the grace after a limit is over, even if the function ignores
//     its context. An abandoned function is reported, with its stack.
//  4. A late result is kept: the value as a partial result, the error in the tree of the timeout's
//     error.
//  5. A finished execution leaves no goroutine, timer or descriptor behind.
//  6. The library prints nothing, starts nothing before it is used, and logs only to the logger
//     that it was given.
package tooldeadline

// Package task lets a tool call outlive its answer: a call that takes longer than its soft limit is
// answered with a handle and runs on, the same function under the same limits, and its result is
// fetched later. For clients that support MCP tasks, of either protocol, the handle is a task. For all
// others it is an ordinary result with the name of a tool that waits for the result of the call.
//
// A server has one [Tasks] for all its connections, and passes it to an adapter:
//
//	tasks := new(task.Tasks)
//	defer tasks.Close()
//	mcpsdk.Install(server, &mcpsdk.Options{Policy: policy, Tasks: tasks})
//
// Tasks are kept in a [Store]: that of [NewMemory], or one that the replicas of a server share. Package tasktest
// has the tests for a store. Package adapter turns calls into tasks, and answers requests about them.
//
// # Guarantees
//
//  1. A call is answered with its result or with a handle, never with both, and its tool is
//     called once. The handle comes when the soft limit is reached and not before; a result that
//     is there by then wins.
//  2. A client never gets a task unless it has asked for tasks, or declared them, as its protocol
//     says.
//  3. A task can be read before its handle is returned. A final status never changes, even if
//     several processes write it.
//  4. A task is unknown to every other principal, and without one to every other session; its id
//     is 130 random bits.
//  5. After the handle only tasks/cancel, the limits of the tool, and the end of the server stop
//     the call; a continuation ends with its session, too. A call that was stopped has the same
//     result as one without tasks, unless the client has cancelled the task.
//  6. The number of running tasks is bounded, and so are the number and the size of those kept.
//     Beyond the bounds, or if the store cannot be reached, a call is handled as it would be
//     without tasks.
//  7. An outage of the store that is shorter than the retention loses no result and no cancel. Every
//     task ends, even after a longer outage.
//  8. Nothing about a call is sent to a client after a handle whose protocol does not allow the
//     client to follow it, nor after the end.
//  9. Nothing is started before the first task, and nothing is left when the last has expired.
package task

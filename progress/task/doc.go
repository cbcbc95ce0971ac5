// Package task is a tool call that outlives its answer: a call that takes longer than its soft
// limit is answered with a handle and runs on, the same function under the same limits, and its
// result is fetched later. To clients that know MCP tasks, of either protocol, the handle is a
// task; to all others it is an ordinary result that names a tool to wait with. The package knows
// the rules and both wire forms, and no SDK; the packages mcpsdk and mcpgo connect it to one each.
//
// A server without them has one [Tasks] for all its connections, runs each tools/call by [Do], and
// answers tasks/* by [Tasks.Serve]:
//
//	tasks := task.New()
//	defer tasks.Close()
//
//	// tools/call
//	soft, taskOnly := policy.Soft(params.Name)
//	result, record, err := task.Do(ctx, tasks,
//		task.Call{Tool: params.Name, Client: client, Asked: params.Task != nil, Soft: soft, TaskOnly: taskOnly},
//		func(ctx context.Context, answers map[string]json.RawMessage) (Result, error) {
//			return supervised(ctx, params, answers) // toolcall.Do, as ever
//		}, encode)
//	if record != nil {
//		return record.Handle()
//	}
//
//	// tasks/*
//	fields, err := tasks.Serve(ctx, task.Request{Method: method, Params: raw, Client: client})
//
// A [Continuation] is for clients that know no tasks, and [Tasks.Wait] the tool that it adds. Where
// tasks are kept is a [Store]: [Memory], or one that the replicas of a server share; package
// tasktest has the tests for one.
//
// # Guarantees
//
//  1. A call is answered with its result or with a handle, never with both, and its tool is
//     called once. The handle comes when the soft limit is reached and not before; a result that
//     falls due with it wins.
//  2. A client that has not asked for tasks, or not declared them, in the way of its protocol,
//     never gets one.
//  3. A task can be read before its handle is returned. A final status never changes, also where
//     several processes write it.
//  4. A task is unknown to every other principal, and without one to every other session; its id
//     is 130 random bits.
//  5. After the handle only tasks/cancel, the limits of the tool, and the end of the server stop
//     the call; a continuation ends with its session, too. What a stopped tool leaves is the
//     result, as in a plain call, but that of a task which its client has cancelled.
//  6. What is running and what is kept are bounded, in number and bytes. Beyond that, and where the
//     store cannot be reached, a call is what it would be without tasks.
//  7. An outage of the store that is shorter than the retention loses no result and no cancel; after a
//     longer one, too, every task ends.
//  8. Nothing about a call is sent to a client after a handle which its protocol does not allow
//     it to follow, nor after the end.
//  9. Nothing is started before the first task, and nothing is left when the last has expired.
package task

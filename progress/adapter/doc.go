// Package adapter has the parts that adapters to MCP SDKs, such as the packages mcpsdk and mcpgo,
// have in common; programs do not call it. It implements the rules of the protocol without an SDK,
// on top of three packages that programs do call: toolcall, request and task.
//
// An adapter for servers makes a [Server] of its [Options], answers repeated calls with [Repeat], and aborts calls with
// [Sessions]. Package request has all that an adapter for clients needs.
//
// A server with tasks runs each tools/call by [Do], and answers tasks/* by [Serve]:
//
//	// tools/call
//	soft, taskOnly := policy.Soft(params.Name)
//	return adapter.Do(ctx, tasks,
//		adapter.Call{Tool: params.Name, Caller: caller, Asked: params.Task, Soft: soft, TaskOnly: taskOnly},
//		func(ctx context.Context, t *adapter.Task, answers map[string]json.RawMessage) (Result, error) {
//			return supervised(ctx, params, t, answers) // toolcall.Do, with ctx
//		}, encode, handle)
//
//	// tasks/*
//	fields, err := adapter.Serve(ctx, tasks, nil, caller, method, raw)
//
// A [Continuation] is for clients that know no tasks. It adds a tool that waits.
//
// # Handles
//
// A client that asks for a task (2025-11-25) gets its handle at once, whatever the soft limit is; one that declares
// tasks (2026-07-28), when the soft limit is reached; any other, where there is a Continuation, when its
// After is reached.
//
// The result of a tool that has returned before its handle is given wins, whether the soft limit has been reached or
// the store is still taking the record. If the soft limit and the result come at the same instant, either may win. The
// client waits for the result of the call, as without tasks, if [task.Tasks.MaxRunning] is reached, if the store has no
// room for the task or does not answer within 5 s, or if its context has a deadline before the soft limit. A store that
// cannot be reached delays no answer: only a tool whose handle is due at once starts late, by at most 1 s.
//
// # Guarantees
//
// Those of tasks are in package task. Beyond them:
//
//  1. Where [Call.Within] says when the client has to have an answer, the handle comes by then, or the
//     tool is stopped where none can be given.
package adapter

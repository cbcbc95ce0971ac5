// Package adapter is what the adapters to MCP SDKs share, such as the packages mcpsdk and mcpgo;
// programs do not call it. It knows the rules of the protocol and no SDK, and stands on three
// packages that programs know: toolcall, request and task.
//
// An adapter for servers aborts calls with [Sessions] and tells a tool's own errors from others by
// [Foreign]. One for clients reads what a server declares into [Declarations], runs the handlers of
// notifications in a [Queue], and repeats only what is [Repeatable].
//
// # Guarantees
//
//  1. Nothing is repeated that is not safe to repeat: a tools/call never is.
//  2. A handler of notifications that is slow, or ends its goroutine with runtime.Goexit, delays no
//     renewal of a limit and no answer.
package adapter

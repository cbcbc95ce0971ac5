// Package task is a tool call that outlives its answer: a call that takes longer than its soft
// limit is answered with a handle and runs on, the same function under the same limits, and its
// result is fetched later. To clients that know MCP tasks, of either protocol, the handle is a
// task; to all others it is an ordinary result that names a tool to wait with. The package knows
// the rules and both wire forms, and no SDK; the packages mcpsdk and mcpgo connect it to one each.
package task

// Package timeout runs a function under two limits: an idle limit, which a heartbeat
// renews, and a total, which nothing does. The function is cancelled only when it is
// stuck or when the hard cap is reached.
//
//	err := timeout.RunWithExecutionTimeout(ctx, func(ctx context.Context) error {
//		return hashFiles(ctx) // calls heartbeat.Beat(ctx) after each file
//	}, timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute})
//	os.Exit(timeout.ExitCode(err))
//
// The limits come from a [Config], which is an option like [WithName] or
// [WithLogger]; from package policy, which has one for each tool; from [SetDefault]; or from
// MCP_TIMEOUT and MCP_IDLE_TIMEOUT in the environment, in seconds. An error of type [*Error]
// says what stopped the function and how it stood then.
//
// # What zero means
//
// A limit of 0 is off, in every [Config], wherever it stands; a Config that is not given is nil or
// absent, never zero. A single duration that is not a limit, such as a grace or an interval, has a
// default: 0 means that default, and a negative value means none.
//
// # Guarantees
//
//  1. Idle fires when now − last heartbeat ≥ idle, total when now − start ≥ total; at the
//     same instant it is total. Neither ever fires early.
//  2. An execution has exactly one outcome, and the error, the context's Cause, the hooks
//     and the log all report that one. After a limit the Err of that context, and of
//     those made from it, is context.DeadlineExceeded.
//  3. A function that returns before its limit falls due is never reported as timed out;
//     one that returns later always is, with its value and its error kept.
//  4. Run returns at the latest a grace after the limit, even if the function ignores its
//     context, and at once when the function answers. A hook or a log handler that does not
//     return delays it for as long: [Hooks] says which of them are waited for.
//  5. An abort is never mistaken for a timeout, nor a timeout for an abort, whatever
//     error the function makes of its cancelled context.
//  6. A deadline of the caller's context is a total.
//  7. A panic of the function reaches Run's caller, and never ends the process on another
//     goroutine.
//  8. Heartbeats and holds of nested executions count for those around.
//  9. A finished execution leaves nothing behind: no goroutine, no timer. An abandoned
//     one leaves the function's goroutine, and nothing else.
//  10. Time in which the process itself could not run is nobody's silence: the idle limit
//     starts afresh. The total goes on.
//  11. No hook changes what ends the function's context, when, or with which Err and Cause,
//     except by calling [Execution.Abort].
//  12. An execution is closing when no more than its Reserve is left, and whatever encloses it is
//     closing. That is told once, and cancels nothing.
//  13. An execution reports to the watchers that were there when it began, and to them until
//     it has ended. What runs under [WithObserveOnly] is stopped by its caller or by Abort,
//     and by no limit.
//
// All functions and methods are safe for concurrent use.
//
// # With errgroup
//
// A function that works on several goroutines makes their group from the context that it was
// given, with errgroup.WithContext(ctx) inside the function. That context carries the
// heartbeat, so each worker's beat renews the execution's limit, and a limit cancels it, and
// with it the group. A group that was made outside, from the caller's context, has neither.
// Return the group's Wait, and only then: a function that leaves workers behind has ended
// while they run on. Group.Wait cancels the group's context, but not the function's.
//
// A panic in a worker is not the function's. errgroup does not recover it, and it ends the
// process.
//
// To bound how many executions run at once, take a slot of a semaphore before Run; an
// Example of Run shows it.
//
// # Cost
//
// A run costs a goroutine and about 2.2 microseconds over calling the function, little more than
// context.WithTimeout with a goroutine and a select around it. That goroutine is what
// lets Run return on time when the function does not.
//
// A watcher, see [Watch], adds less than a tenth to that, and hooks at the start and at the
// end about a fifth. While nobody watches, a run pays one atomic load.
//
// # Stuck tools
//
// With [WithName], the function's goroutine and those that it starts carry the pprof
// label "tool". "go tool pprof -tags" and a goroutine dump with debug=1 show them.
package timeout

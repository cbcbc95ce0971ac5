// Package timeout runs a function under two limits: an idle limit, which a heartbeat
// renews, and a total, which nothing renews. The function is cancelled only when it is
// stuck or when the hard cap is reached.
//
//	err := timeout.RunWithExecutionTimeout(ctx, func(ctx context.Context) error {
//		return hashFiles(ctx) // calls heartbeat.Beat(ctx) after each file
//	}, timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute})
//	os.Exit(timeout.ExitCode(err))
//
// The limits come from a [Config], which is an option like [WithName] or
// [WithLogger]; from package policy, which has a Config for each tool; from [SetDefault]; or from
// MCP_TIMEOUT and MCP_IDLE_TIMEOUT in the environment, in seconds. An error of type [*Error]
// says what stopped the function and in which state it was.
//
// # What zero means
//
// A limit of 0 is off in every [Config]. A Config that is not given is nil or absent, never zero. A single duration
// that is not a limit, such as a grace or an interval, has a default: 0 means that default, and a negative value
// means none.
//
// # Guarantees
//
//  1. The idle limit fires when now − last heartbeat ≥ idle, and the total when
//     now − start ≥ total. At the same instant the total wins. Neither ever fires early.
//  2. An execution has exactly one outcome, which the error, the context's Cause, the hooks
//     and the log all report. After a limit, the Err of the function's context and of the
//     contexts made from it is context.DeadlineExceeded.
//  3. A function that returns before its limit falls due is never reported as timed out. A
//     function that returns later always is, and its value and its error are kept.
//  4. Run returns at the latest a grace after the limit, even if the function ignores its
//     context, and at once when the function returns. No stop waits for a hook or a log handler.
//     The return waits for them, but for no more than a grace; [Hooks] says how it tells.
//  5. An abort is never mistaken for a timeout, nor a timeout for an abort, whatever
//     error the function returns under its cancelled context.
//  6. A deadline of the caller's context acts as a total.
//  7. A panic of the function reaches Run's caller, and never ends the process from another
//     goroutine.
//  8. Heartbeats and holds of nested executions count for the enclosing ones.
//  9. A finished execution leaves nothing behind: no goroutine, no timer. An abandoned
//     execution leaves the function's goroutine and nothing else, and a hook or a log handler that
//     does not return leaves one.
//  10. Time in which the process itself could not run does not count as silence: the idle limit
//     starts afresh. The total goes on.
//  11. No hook changes what ends the function's context, when, or with which Err and Cause,
//     except by calling [Execution.Abort].
//  12. An execution is closing when no more than its Reserve is left, or when an enclosing
//     execution is closing. That is reported once and cancels nothing.
//  13. An execution reports to the watchers that were registered when it began, until it has
//     ended. Under [WithObserveOnly] only its caller or Abort stops it, and no limit.
//
// All functions and methods are safe for concurrent use.
//
// # With errgroup
//
// A function that works on several goroutines makes their group from the context that it was
// given, with errgroup.WithContext(ctx) inside the function. That context carries the
// heartbeat, so each worker's beat renews the execution's limit, and a limit cancels it, and
// with it the group. A group that was made outside, from the caller's context, has neither.
// The function must not return before the group's Wait has: workers that it leaves behind
// run on after the execution has ended. Group.Wait cancels the group's context, but not the function's.
//
// A panic in a worker is not a panic of the function. errgroup does not recover it, and it
// ends the process.
//
// To bound the number of executions at a time, acquire a semaphore before Run; see the examples of
// Run.
//
// # Cost
//
// A run costs a goroutine and about 2.2 microseconds over calling the function, little more than
// context.WithTimeout with a goroutine and a select around it. That goroutine lets Run return on time
// when the function does not.
//
// A watcher (see [Watch]) adds about a tenth to that, and hooks at the start and at the end, which the
// function's goroutine calls, 0.3 to 1.3 microseconds (on a busy machine). Without a watcher, a run pays one
// atomic load.
//
// # Stuck tools
//
// With [WithName], the function's goroutine and those that it starts carry the pprof
// label "tool". "go tool pprof -tags" and a goroutine dump with debug=1 show them.
package timeout

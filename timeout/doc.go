// Package timeout runs a function under two limits: an idle limit, which each heartbeat renews, and a total, which
// nothing renews. The function is cancelled only if it is stuck or has run for the whole total.
//
//	err := timeout.RunWithExecutionTimeout(ctx, func(ctx context.Context) error {
//		return hashFiles(ctx) // calls heartbeat.Beat(ctx) after each file
//	}, timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute})
//	os.Exit(timeout.ExitCode(err))
//
// The limits come from a [Config], which is an option like [WithName] or [WithLogger]; from package policy, which has
// a Config for each tool; from [SetDefault]; or from MCP_TIMEOUT and MCP_IDLE_TIMEOUT in the environment, in seconds.
// An error of type [*Error] describes which limit stopped the function, and its state at that time.
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
//  2. An execution has exactly one outcome, which the error, the context's Cause, the hooks and the log all report.
//     After a limit, the Err of the function's context and of the contexts made from it is context.DeadlineExceeded.
//  3. A function that returns before its limit falls due is never reported as timed out. A
//     function that returns later always is, and its value and its error are kept.
//  4. Run returns at the latest a grace after the limit, even if the function ignores its
//     context, and at once when the function returns. No stop waits for a hook or a log handler.
//     The return waits for them, but for no more than a grace; [Hooks] describes that wait.
//  5. An abort is never mistaken for a timeout, nor a timeout for an abort, whatever
//     error the function returns under its cancelled context.
//  6. A deadline of the caller's context acts as a total, and so does TOOL_DEADLINE in the environment.
//  7. A panic of the function reaches Run's caller, and never ends the process from another goroutine.
//  8. Heartbeats and holds of nested executions count for the enclosing ones.
//  9. A finished execution leaves nothing behind: no goroutine, no timer. An abandoned execution leaves the function's
//     goroutine and nothing else, and a hook or a log handler that does not return leaves one.
//  10. Time in which the process itself could not run does not count as silence: the idle limit
//     starts afresh. The total goes on.
//  11. No hook changes what ends the function's context, when, or with which Err and Cause,
//     except by calling [Execution.Abort].
//  12. An execution is closing when no more than its Reserve is left, or when an enclosing
//     execution is closing. That is reported once and cancels nothing.
//  13. An execution reports to the watchers that were registered when it began, until it has
//     ended. Under [WithObserveOnly] only its caller, TOOL_DEADLINE or Abort stops it.
//
// All functions and methods are safe for concurrent use.
//
// # The function's context
//
// After an idle or a total timeout the Err of the function's context is context.DeadlineExceeded, and so is, at once,
// the Err of every context derived from it, as under context.WithTimeout, so that database drivers, gRPC and net/http
// report a timeout. Its Cause is the [*Error], which distinguishes the limits and has the Cause of the caller's
// deadline in its tree (see context.WithTimeoutCause). After the end of the caller's context, Err and Cause are those
// of that context. After the function's return both are context.Canceled. Err of the function's context reports the
// end of the caller's immediately. Done, and the contexts derived from the function's, follow once Run's goroutine
// has noticed.
//
// Cancelling does not end a call that takes no context. Closing the connection or file that it waits for often does:
//
//	stop := context.AfterFunc(ctx, func() { conn.Close() })
//	defer stop()
//
// Before it calls the function, Run calls the methods of its caller's context on its caller's goroutine, and has to
// wait for them. Later, no stop and no return waits for them: if such a method blocks, only the limits end the
// execution. A context that has a deadline and does not end by it is stopped 100 ms later.
//
// # Panics
//
// If the function panics with an error that is not a runtime.Error, Run panics with the same error, so
// that a caller can compare it after recovering, as net/http does with http.ErrAbortHandler. For any
// other value Run panics with an error that prints the value and its stack, and in which errors.As finds
// the [*PanicError]. A crash prints the stack in both cases.
//
// The goroutine of an abandoned function lives until the function returns. Its result is dropped; a panic in it is
// reported and does not end the process.
//
// # Time
//
// Time is measured on the monotonic clock. On most systems that clock stands still while the machine sleeps, and then
// an execution does not age. If the clock goes on while the process cannot run, because the process is stopped (by
// SIGSTOP, Ctrl-Z or a debugger), its machine is paused or its container is starved, the idle limit starts afresh
// when the process runs again. The stall is logged and counted, and does not count as a gap of the tool. There must
// be two signs of a stall: the execution's own timer is overdue by more than a slack of a quarter of the idle limit,
// at least 10 ms and at most 1 s; and meanwhile no timer of any execution in the process fired for longer than that
// slack. A timer that is overdue only because many are due at once is no sign of a stall. The total does not move.
//
// If the work of processes also renews the idle limit, as with procgroup.Activity, the limit may be checked later
// than it falls due, as described there, and heartbeats until then count.
//
// # A deadline in the environment
//
// The parent process may set a deadline for a program in TOOL_DEADLINE, as procgroup.Notify does: an instant as in
// RFC 3339, read once. It bounds each execution as a deadline of its caller would, and is converted to an instant of
// the monotonic clock. A value that cannot be read is logged and ignored. The deadline is ignored on a clock of
// [WithClock] and in a bubble of testing/synctest, so that a test has the same outcome with and without it.
//
// # With errgroup
//
// A function that works on several goroutines creates their group inside, from the context that it gets: each worker
// then beats for the execution, and a limit cancels the group. The function must not return before the group's Wait has.
// errgroup does not recover a panic in a worker, which ends the process. To bound the number of executions at a time,
// acquire a semaphore before Run, and release it in the function, which may return later than Run.
//
// # Cost
//
// A run costs a goroutine and about 2.2 microseconds more than a call of the function, little more than
// context.WithTimeout with a goroutine and a select around it. That goroutine lets Run return on time when the
// function does not.
//
// A watcher (see [Watch]) adds about 0.3 microseconds to that, and hooks at the start and at the end, which the
// function's goroutine calls, 0.3 to 1.3 (on a busy machine). Without a watcher, a run pays one atomic load.
//
// # Stuck tools
//
// With [WithName], the function's goroutine and the goroutines that it starts carry the pprof label "tool". "go tool
// pprof -tags" and a goroutine dump with debug=1 show them.
package timeout

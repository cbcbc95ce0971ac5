// Package procgroup runs a command so that nothing hangs, nothing survives and nothing is
// lost: an [exec.Cmd] under the limits of package timeout, with its output as the
// heartbeat, its whole process tree killed at the end, and what it printed kept.
//
//	res, err := procgroup.Run(ctx, exec.Command("make", "-j8"),
//		procgroup.WithLimits(timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}))
//	fmt.Println(res.ExitCode, res.Combined)
//
// Inside an execution of package timeout, which is how a server runs a tool, no limits
// need to be given: those of the execution apply, output on either stream renews its idle
// limit, and when a limit fires, everything that the command has started is asked to end
// (SIGTERM), continued if it was stopped (SIGCONT), and killed after 5 s. When the caller
// cancels, everything is killed at once.
//
// # What is killed
//
// The process group of the command, on every Unix. What leaves it, as daemons do, is found
// in the way that [Result.Contained] names:
//
//   - [Cgroup], on Linux where the host may create a control group below its own, as
//     root or with delegation. What may move itself to another one escapes.
//   - [Descendants], elsewhere on Linux. What has no living parent, and an environment
//     that is cleared, overwritten (as by setproctitle) or not to be read, escapes; so
//     does what another user runs. Survivors does not list it; Unidentified lists what
//     has no environment to show. A chain of processes each of which ends as soon as it
//     has started the next, every tenth of a millisecond, may outrun the search.
//   - [Helper], on request, on Linux: it also works when the host itself is killed.
//   - [Job], on Windows. It works when the host is killed too; with all others but these
//     two the command then goes on.
//   - [Group], elsewhere. What moves to another group escapes.
//
// # Output
//
// The last MiB of each stream is kept, and of both together; see [WithMaxOutput]. The order
// of both together is that of reading: a pipe for each stream does not tell in which order
// the command wrote to them. [WithOnePipe] keeps the order of writing, and not the streams.
// [WithOutput] passes output on as it comes, [Lines] line by line, and [Progress] makes
// progress lines heartbeats that carry a detail. The command's own Stdout and Stderr fields
// get everything too.
//
// # Busy or stuck
//
// Output is the heartbeat. With [WithActivity] so is work, processor time or bytes read and
// written by the whole tree, for commands that say nothing while they compute. What the
// processes were doing when a limit fired is in [Result.Tree], in the log, and in the
// error, as its Stack.
//
// # Aborting
//
// After a limit the tree is asked to end, and has the kill grace to do so. An abort, which
// is the end of the caller's context for any other reason, kills at once: nobody waits for
// the result any more. A tool that must not be killed in the middle of its work, because
// it holds a lock or writes down what it has changed, as terraform, apt and git do, is
// given time by [WithAbortGrace].
//
// # Guarantees
//
//  1. A command has exactly one outcome: its own end, an idle timeout, a total timeout or
//     an abort. The first wins, and Result, error and exit code say the same. So do
//     hooks, the log, and all that is built on [timeout.Watch]. A limit of an enclosing
//     execution is a timeout of the command, too; the error has the command's own name and
//     figures.
//  2. What the command did itself is kept beside it: a timeout is 124 even if the command
//     then exits 0, and State says so.
//  3. The call returns at the latest the kill grace and 1 s after a limit has fired,
//     whatever descendants, pipes, the caller's reader, writers or callback do. Hooks and
//     log handlers are waited for: one that does not return delays the call, and an Exceeded
//     that does not return delays the kill as well, see [timeout.Hooks].
//  4. After the call nothing of the tree is alive, after success too, as far as the
//     containment reaches; what could not be killed is in Survivors. With WithOrphans,
//     what outlives a command that ends by itself may stay.
//  5. No other process is ever signalled, even if it has got the process id of one that
//     has ended: the leader stays a zombie until its group is empty, or is known by a
//     descriptor; others are looked at again once a descriptor is open. On BSDs other
//     than macOS, where a zombie hides that its group is empty, the group is asked
//     (signal 0) after the leader, and signalled no more.
//  6. Every byte that the command wrote before it ended is counted, however busy the
//     machine; the last ones are kept, within the bounds given, also after a timeout.
//     PipeHeld says that something else still held a stream, and may have written more.
//     The command's own Stdout and Stderr get every byte too, if they take it within the
//     kill grace of its end, or of the limit; what they did not get is in Unwritten and
//     in the error. After one of them has failed, its stream is read no more.
//  7. Output is a heartbeat for the execution of ctx and for all around it, before
//     anybody else sees it. With WithActivity, so is work. It is looked for only where
//     there is an idle limit, and only while there is no output; a command without work is
//     stopped when the idle limit has passed, and at the latest a quarter of it later,
//     unless the machine is too busy to look: see WithActivity.
//  8. The host process gets no subreaper flag, waits for no process but the command, and
//     ignores and handles no signal. A command that waits costs no thread on Linux. What
//     the command has made a child of the host, as clone does with CLONE_PARENT, or has
//     left to it, where the host is process 1 or a subreaper, belongs to its tree: where
//     the containment is Cgroup or Descendants, it is killed and waited for with that, by
//     its own process id. With Descendants so is a process that the host itself has put
//     into the command's process group; and one that has left the group, and ended before
//     it was seen there, cannot be told from the host's own, and stays a zombie.
//  9. When the call has returned there is no goroutine, descriptor, process or control
//     group left of it. The exceptions are a reader, writer or callback of the caller's
//     that does not return, and a process that the system does not kill: they keep a
//     goroutine until they do. So does, with WithOrphans, a daemon that cannot be moved
//     out of the control group of its command; and a process, whoever's, that takes longer than
//     a look may to show its environment to it. And a look for work that is under way at the
//     end goes on until it is over, for a second or so on a busy machine.
package procgroup

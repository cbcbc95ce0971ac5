// Package procgroup runs a command under the limits of package timeout. Output of the command
// is its heartbeat, its whole process tree is killed at the end, and its output is kept. The
// call always returns.
//
//	res, err := procgroup.Run(ctx, exec.Command("make", "-j8"),
//		procgroup.WithLimits(timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute}))
//	fmt.Println(res.ExitCode, res.Combined)
//
// Within an execution of package timeout, such as a tool call of a server, no limits need to
// be given: the limits of the execution apply, and output on either stream renews its idle
// limit. When a limit fires, every process that the command has started is asked to end
// (SIGTERM), continued if it was stopped (SIGCONT), and killed after 5 s. When the caller
// cancels, the processes are killed at once.
//
// # Containment
//
// On every Unix, the process group of the command is killed. Daemons and other processes that
// have left the group are found in a way that depends on the system; [Result.Contained] names
// it:
//
//   - [Cgroup] is the default on Linux if the host may create a control group below its own,
//     as root or by delegation. A process escapes only if it may move itself to another
//     control group.
//   - [Descendants] is the default elsewhere on Linux. A process escapes if it has no living
//     parent and its environment has been cleared, overwritten (as by setproctitle), or made
//     unreadable, or if it runs as another user. Survivors does not list it. Unidentified
//     lists it if it shows no environment at all; where it runs as another user, only if it is in
//     the control group of this program, too. A process that shows an environment without the
//     variable looks like any other daemon; so does a program that was started by a shell
//     with an empty environment, because shells add variables of their own. A chain of
//     processes that each end within a tenth of a millisecond after starting the next may
//     outrun the search.
//   - [Helper] can be chosen on Linux. It also works when the host itself is killed.
//   - [Job] is the default on Windows. It also works when the host is killed. With the other
//     containments except Helper, the command keeps running if the host is killed.
//   - [Group] is the default on other systems. A process escapes if it moves to another group.
//
// # Output
//
// The last MiB of each stream is kept, and the last MiB of both together; see [WithMaxOutput].
// [WithHead] also keeps the beginning, and [WithSpill] all of it in a file. [Output.Text] returns
// the output as a person would have read it on a terminal. [WithOutputLimit] stops a command that
// writes too much. The combined output has the order of reading, because separate pipes do not show
// in which order the command wrote to them. [WithOnePipe] preserves the order of writing, but does
// not distinguish the streams; so does [WithTerminal], which gives the command a terminal, to which
// many programs write each line at once. [WithOutput] passes output on as it arrives, and [Lines]
// passes it on line by line. The command's own Stdout and Stderr also get all output.
//
// # Busy or stuck
//
// Output is the heartbeat. With an [Activity], work of the whole process tree is a heartbeat too:
// processor time or I/O, for commands that print nothing while they compute. [Result.Tree] lists
// the processes as they were when a limit fired; the log and the Stack of the error have the same
// list. [WithStacks] adds where their threads were, for programs in Go, Java and Python.
//
// # Aborting
//
// After a limit the tree is asked to end, and has the kill grace to do so. An abort is the
// end of the caller's context for any other reason. It kills at once, because nobody waits
// for the result. [WithAbortGrace] gives time to a tool that must not be killed while it
// works, because it holds a lock or writes state, as terraform, apt and git do.
// [WithClosingSignal] tells a command that its time is running out, before a limit stops it.
//
// # Guarantees
//
//  1. A command has exactly one outcome: it ended by itself, or was stopped by an idle timeout, a
//     total timeout, or an abort. The first one wins. The Result, the error, the exit code, hooks,
//     the log, and everything built on [timeout.Watch] agree on it. If a limit of an enclosing
//     execution stops the command, that is a timeout of the command, too; the error has the name
//     and limits of the command.
//  2. The Result also says how the command's own process ended: the exit code of a timeout is
//     124 even if the command then exits with 0, and State has that 0.
//  3. The call returns at most the kill grace plus 1 s after a limit has fired, regardless
//     of descendants, pipes, and the caller's reader, writers and callback. It waits for hooks and
//     log handlers for at most the kill grace and a second more; the kill waits for none; see
//     [timeout.Hooks].
//  4. After the call no process of the tree is alive, even after success, as far as the
//     containment reaches. Survivors lists processes that could not be killed. With
//     WithOrphans, processes that outlive a command that has ended by itself are kept.
//  5. No process outside the tree is ever signalled, even if it has got the process id of one
//     that has ended. The leader remains a zombie until its group is empty, or is identified
//     by a descriptor; other processes are checked again once a descriptor is open. On BSDs
//     other than macOS, where a zombie hides whether its group is empty, the group is probed
//     with signal 0 after the leader has been reaped, and not signalled again.
//  6. Every byte that the command wrote before it ended is counted, however busy the machine
//     is, and the last bytes are kept within the given bound, even after a timeout. PipeHeld
//     reports that another process still held a stream and may have written more. The
//     command's own Stdout and Stderr get every byte as well, if they accept it within the
//     kill grace after the end or the limit. Unwritten and the error report missing
//     bytes. After a writer has failed, its stream is no longer read. Stacks that WithStacks has
//     asked for are counted in Stacks instead.
//  7. Output is a heartbeat for the execution of ctx and for all enclosing ones, before it is
//     passed on. With an Activity, work is one too. Work is measured only if there is an idle
//     limit, and only while there is no output. A command without output and work is stopped when
//     the idle limit has passed, at most a quarter of the limit late, unless the machine is too
//     busy to measure; see [Activity].
//  8. The host process does not become a subreaper, waits for no process but those of the command,
//     and neither ignores nor handles signals. On Linux a waiting command occupies no thread. A
//     process becomes a child of the host if the command creates it with CLONE_PARENT, or leaves it
//     behind while the host is process 1 or a subreaper. It belongs to the tree: with Cgroup and
//     Descendants it is killed and waited for, by its own process id. With Descendants this applies
//     also to a process that the host itself has put into the command's process group. A process
//     that has left the group and ended before it was seen cannot be distinguished from the host's
//     own children, and remains a zombie. With Group it is killed if it is in the group, but never
//     waited for, and remains a zombie. The host gets one SIGCHLD for each command, and one more if
//     the first command in a control group has a Stdin: whether control groups can be used is then
//     tried first.
//  9. When the call has returned, no goroutine, descriptor, process or control group of it is
//     left, with these exceptions. A reader, writer or callback of the caller that does not
//     return keeps a goroutine until it does, and so does a process that the system does not
//     kill, a question about a process that the system does not answer (Unanswered counts them;
//     a file system whose server is away is the usual reason), and, with WithOrphans, a daemon that
//     cannot be moved out of the command's control group. Nothing waits for such a question, but
//     this program itself may be unable to end before it is answered. A measurement of work
//     that is in progress at the end continues until it is complete, for about a second on a
//     busy machine.
package procgroup

// Package procgroup runs a command under the limits of package timeout. Output of the command is its heartbeat, its
// whole process tree is killed at the end, and its output is kept. A call returns in bounded time, whatever the command
// and its descendants do.
//
//	res, err := procgroup.Run(ctx, exec.Command("make", "-j8"),
//		procgroup.Limits{Total: 30 * time.Minute, Idle: 2 * time.Minute})
//	fmt.Println(res.ExitCode, res.Combined)
//
// Within an execution of package timeout, such as a tool call of a server, no limits need to be given: the limits of
// the execution apply, and output on either stream renews its idle limit. When a limit fires, every process that the
// command has started is asked to end (SIGTERM), continued if it was stopped (SIGCONT), and killed after 5 s. When the
// caller cancels, the processes are killed at once.
//
// # Containment
//
// On every Unix, the process group of the command is killed. How daemons and other processes that have left the group
// are found depends on the system. [Result.Contained] is the [Containment] that was used:
//
//   - [Cgroup] is the default on Linux if the host may create a control group below its own, as root or by delegation.
//     A process escapes only if it may move itself to another control group.
//   - [Descendants] is the default elsewhere on Linux. A process escapes if it has no living parent and its environment
//     has been cleared, overwritten (as by setproctitle), or made unreadable, or if it runs as another user. Survivors
//     does not list it. Unidentified lists it if it shows no environment at all; a process of another user is listed
//     only if it is also in the control group of this program. A process whose environment lacks the variable of the
//     containment is not listed, because it looks like any other daemon. A program that a shell has started with an
//     empty environment is such a process, because shells add variables. A chain of processes that each end within a
//     tenth of a millisecond after starting the next may outrun the search.
//   - [Helper] can be selected on Linux. It also kills the command when the host itself is killed.
//   - [Job] is the default on Windows. It also kills the command when the host is killed. With the other containments
//     except Helper, the command keeps running if the host is killed.
//   - [Group] is the default on macOS and the BSDs. A process escapes if it moves to another group.
//
// On other systems only the command's own process is killed. On a system without processes, Start returns an error that
// wraps [errors.ErrUnsupported].
//
// # Output
//
// The last MiB of each stream is kept, and the last MiB of both together; see [Capture]. [Output.Text] returns the output
// as a person would have read it on a terminal. The combined output is in the order of reading, because separate pipes
// do not show in which order the command wrote to them. A single pipe and a [Terminal] preserve the order of writing,
// but do not distinguish the streams.
//
// # The command
//
// A Cmd is prepared as by os/exec, with these differences:
//
//   - Stdout and Stderr, if they are set, get the output as well. A slow writer slows the command down. When the
//     command has ended or was stopped, the writers have the kill grace to take the rest of the output; a writer that
//     blocks for longer is abandoned. The error of Wait then says so, and [Result.Unwritten] is the number of missing
//     bytes. Unlike os/exec, Start does not pass an *os.File to the command, because output that does not pass through
//     this process cannot be a heartbeat. If another process makes the file non-blocking, the write waits; a writer
//     that hides its file needs package stdio for that.
//   - After one of these writers has returned an error its pipe is closed, as by os/exec, so that the command gets
//     SIGPIPE or an error when it writes again. Output that it writes afterwards is neither a heartbeat nor in the
//     Result. The error of Wait wraps the error of the writer and that of the command.
//   - Stdin may be a reader that blocks forever. It is then abandoned, with one goroutine, until Read returns. An
//     *os.File is passed to the command directly. [exec.Cmd.StdinPipe] can be used; StdoutPipe and StderrPipe cannot:
//     their pipes are closed at once. Use [Attach] with them.
//   - SysProcAttr is copied and extended. On Unix the command gets its own session, and so no terminal: a program that
//     asks for a password there, such as ssh, gets an error instead of being stopped for ever. If cmd.Stdin is the
//     terminal of this program, or if Setpgid or Foreground is set, the command gets its own process group instead; see
//     [StoppedByTerminal]. In either case Ctrl-C in this program's terminal does not reach the command. Start returns
//     an error if Pgid is set. [Terminal] gives the command a terminal.
//   - The context of [exec.CommandContext] counts as ctx does: its end aborts the command, and its deadline is a total.
//     Cancel and WaitDelay are not used.
//
// With the Descendants and Helper containments, which include the default on many systems, the command gets one extra
// environment variable.
//
// A file system that ceases to answer during the spawn, and one on which this program has a file open that the child
// must close, such as a file of a FUSE server that has to answer each close, can hold up Start, and every other start
// in this program, until it answers: nothing can interrupt a child before it runs its program.
//
// # Busy or stuck
//
// Output is the heartbeat. With an [Activity], work of the whole process tree is a heartbeat too: processor time or
// I/O, for commands that print nothing while they compute. With a [Notify], the command itself sends heartbeats to a
// socket. [Result.Tree] lists the processes as they were when a limit fired; the log and the Stack of the error have the
// same list.
//
// The rate of work is measured over the time in which the tree could work: on Linux, time that a process spends waiting
// for a processor is excluded.
//
// I/O is the larger of two numbers of bytes: those passed to read and write system calls, including those on pipes and
// in-memory files, and those transferred from and to disks, as for memory-mapped files. A byte counts once for every
// process that it passes through.
//
// On Linux, I/O includes the bytes that the tree's TCP connections have received, and the bytes they have sent that
// were acknowledged, from 8 KiB a second on, whichever system call moves them; so a download into memory is work. It
// does not include UDP (and so QUIC), MPTCP, connections in another network namespace, connections that begin and end
// between two examinations, descriptors beyond the first 4096 of the tree, or data passed through Unix sockets with
// recv(2) and send(2).
//
// On Linux, starting programs is not work: a shell that runs a small program five times a second, to see whether a lock
// is free, is idle. How much processor time and I/O went into starting programs is estimated from the number of page
// faults and from what one costs on this machine. That part counts only above 10 % of one core (15 % where a page fault
// takes 14 µs, as in some virtual machines) or 4 MiB per second, or if three consecutive examinations found a process
// running, because find -exec, make and configure scripts do little but start programs. A process that waits for a
// processor is running, so on a machine with far too much to do such a shell may count as working. On Windows, starting
// programs is work.
//
// On Linux, processor time is that of the control group if [Result.Contained] is [Cgroup], and I/O that of the group
// and of its members in /proc. With the other containments, both are those of the members that were found; a process
// that has ended counts once its parent has waited for it. The I/O of processes that run as another user is not seen,
// and no work of processes that have escaped the containment, whether [Result.Unidentified] lists them or not. On
// Windows, both are those of the job object.
//
// # Stacks
//
// With Stacks of [Stop], the programs of the command write where their threads are before a limit stops the command.
//
// A signal is sent only to a process that is known to handle it by writing its stacks:
//
//   - a program that was built by Go gets SIGQUIT, and ends with exit code 2. If the program handles SIGQUIT itself,
//     its handler decides.
//   - a JVM gets SIGQUIT, and goes on; with -Xrs it gets no signal.
//   - Python gets SIGABRT, if PYTHONFAULTHANDLER was set in the environment of the process and all signals of the fault
//     handler are handled. It ends, and may leave a core file if core files are enabled. If the program has put its own
//     handler over the fault handler, its handler decides. A program that calls faulthandler.enable, as pytest does,
//     needs the variable too: from outside, its handler is not distinguished from one that does something else.
//
// No other process gets a signal, and neither does a process that this program may not examine, such as one of another
// user. Nothing is sent before an abort, or if the command is stopped for another reason, such as [WaitingForInput].
// The programs have 200 ms of the kill grace, or half of the grace if that is less; without a grace nothing is sent. To
// recognise them takes a few milliseconds, and on a busy machine up to another 200 ms, or a quarter of the grace. They
// are asked one after the other, the youngest first, so that their texts are not mixed. Then the command is stopped as
// without this option: the outcome and the exit code are those of the limit, and all processes are asked to end.
//
// The stacks are distinguished from the output by their first line. From that line on, everything that any process
// writes to the same stream is taken for stacks, until the time is over or the stacks of a JVM end. Stacks are neither
// in the output of the Result nor passed on; the output before and after them is complete. The first 256 KiB of the
// stacks are kept. If a program takes longer, the rest of its stacks may be in the output.
//
// # Terminals
//
// A [Terminal] differs from pipes in the following respects:
//
//   - All output counts as stdout, in the order of writing, as with one pipe. The terminal puts a carriage return
//     before each newline, and adds what is typed, unless the command has turned its echo off. cmd.Stderr must be nil
//     or the same as cmd.Stdout.
//   - What is read from cmd.Stdin, a file too, is typed: the bytes 3 and 28 interrupt the command (Ctrl-C and Ctrl-\).
//     A [TypingError] says what does not arrive. A program that discards what was typed before it asks, as sudo and ssh
//     do, does not get it; see [Input]. The end of cmd.Stdin is typed as well (Ctrl-D), once: it ends the input of the
//     process that reads then. If cmd.Stdin is nil, nobody types, and a command that reads its input waits; see
//     [Input]. [exec.Cmd.StdinPipe] can be used.
//   - When the leader ends, the system sends SIGHUP to the processes in the foreground. Otherwise, the command is
//     stopped as without a terminal. An interactive shell ignores SIGTERM, but not SIGHUP; see [Stop].
//   - If a writer fails, the terminal is closed: the leader gets SIGHUP, and a process that writes gets an error.
//   - With Orphans the terminal is not a controlling one, because SIGHUP would end the orphans. Writing to it after the
//     call is an error.
//
// # Unattended commands
//
// Unattended of [Input] sets these variables, unless they are set. For some programs there is only an option: sudo -n,
// gpg --batch, apt-get -y.
//
//	GIT_TERMINAL_PROMPT=0           git asks for no user name or password
//	GIT_ASKPASS=true                git gets an empty answer from the program that it asks instead
//	GIT_EDITOR, EDITOR, VISUAL=true an editor leaves the text as it is: git merge takes the default
//	                                message, git commit without a message fails
//	GIT_SEQUENCE_EDITOR=true        git rebase -i leaves the list of commits as it is
//	SSH_ASKPASS=false,              ssh gets no password, no passphrase and no answer about an
//	SSH_ASKPASS_REQUIRE=force       unknown host, and fails
//	PAGER, GIT_PAGER, MANPAGER,     output is not paged
//	SYSTEMD_PAGER=cat
//	DEBIAN_FRONTEND=noninteractive  debconf takes the defaults; apt-get still asks [Y/n]
//	npm_config_yes=true             npm init and npx ask nothing
//	TERM=dumb                       no colours, no drawing
//
// # Attach
//
// A command that os/exec runs, see [Attach], differs from one of [Run]:
//
//   - There is no Result, and there are no limits: only cmd's context bounds the command.
//   - If the command ends by itself, the processes that it started keep running.
//   - Output is not a heartbeat, unless it is written to a heartbeat.Writer.
//   - The processes that are left when Wait returns are killed only if the program runs until the end of the grace.
//   - Attach replaces cmd.Cancel. To add a Cancel function, call Attach first, and have the new function call the one
//     that Attach has set.
//   - cmd.Dir must exist already.
//   - cmd.Env may be changed before the call, and appended to afterwards. If it is replaced afterwards, descendants
//     outside the process group are not found. The error of Cancel then says so; cmd.Wait returns that error unless the
//     command has failed anyway.
//
// # Guarantees
//
//  1. A command has exactly one outcome: it ended by itself, or was stopped by an idle timeout, a total timeout, or an
//     abort. The first one wins. The Result, the error, the exit code, hooks, the log, and everything built on
//     [timeout.Watch] agree on it. If a limit of an enclosing execution stops the command, that is a timeout of the
//     command, too; the error has the name and limits of the command.
//  2. The Result also says how the command's own process ended: the exit code of a timeout is 124 even if the command
//     then exits with 0, and State has that 0.
//  3. The call returns at most the kill grace plus 1 s after a limit has fired, regardless of descendants, pipes, and
//     the caller's reader, writers and callback. It waits for hooks and log handlers for at most the kill grace and a
//     second more; the kill waits for none; see [timeout.Hooks].
//  4. After the call no process of the tree is alive, even after success, as far as the containment reaches. Survivors
//     lists processes that could not be killed. With Orphans, processes that outlive a command that has ended by itself
//     are kept.
//  5. No process outside the tree is ever signalled, even if it has got the process id of one that has ended. The
//     leader remains a zombie until its group is empty, or is identified by a descriptor; other processes are checked
//     again once a descriptor is open. On BSDs other than macOS, where a zombie hides whether its group is empty, the
//     group is probed with signal 0 after the leader has been reaped, and not signalled again.
//  6. Every byte that the command wrote before it ended is counted, however busy the machine is, and the last bytes are
//     kept within the given bound, even after a timeout. PipeHeld reports that another process still held a stream and
//     may have written more. The command's own Stdout and Stderr get every byte as well, if they accept it within the
//     kill grace after the end or the limit. Unwritten and the error report missing bytes. After a writer has failed,
//     its stream is no longer read. Stacks that a [Stop] has asked for are counted in Stacks instead.
//  7. Output is a heartbeat for the execution of ctx and for all enclosing ones, before it is passed on. With an
//     Activity, work is a heartbeat, too, and with a Notify, so is what the command says of itself. Work is measured
//     only if there is an idle limit, and only while there is no output. A command without output and work is stopped
//     when the idle limit has passed, at most a quarter of the limit late, unless the machine is too busy to measure;
//     see [Activity].
//  8. The host process does not become a subreaper, waits for no process but those of the command, and neither ignores
//     nor handles signals. On Linux a waiting command occupies no thread. A process becomes a child of the host if the
//     command creates it with CLONE_PARENT, or leaves it behind while the host is process 1 or a subreaper. It belongs
//     to the tree: with Cgroup and Descendants it is killed and waited for, by its own process id. With Descendants
//     this applies also to a process that the host itself has put into the command's process group. A process that has
//     left the group and ended before it was seen cannot be distinguished from the host's own children, and remains a
//     zombie. With Group it is killed if it is in the group, but never waited for, and remains a zombie. The host gets
//     one SIGCHLD for each command, and one more if the first command in a control group has a Stdin: whether control
//     groups can be used is then tried first.
//  9. When the call has returned, no goroutine, descriptor, process, control group or socket of it is left, with these
//     exceptions. A reader, writer or callback of the caller that does not return keeps a goroutine until it does, and
//     so does a process that the system does not kill, a question about a process that the system does not answer
//     (Unanswered counts them; a file system whose server is away is the usual reason), which also keeps the
//     descriptors of the command open, and, with Orphans, a daemon that cannot be moved out of the command's control
//     group. Nothing waits for such a question, but this program itself may be unable to end before it is answered. A
//     measurement of work that is in progress at the end continues until it is complete, for about a second on a busy
//     machine.
package procgroup

package procgroup

import (
	"os"
	"time"
)

// A Result describes how a command that was started has ended. It is complete when Wait returns, and does not change
// afterwards.
type Result struct {
	// ExitCode is timeout.ExitCode of the error that was returned with the Result: 0, the command's own code, 128+n for
	// a signal n, 124 for a timeout, WaitingForInput and StoppedByTerminal, 130 for an abort, 137 for OutOfMemory, or
	// 153 for TooMuchOutput. It is 1 if only a reader or writer of the caller failed, unless its error has an ExitCode
	// method.
	ExitCode int
	// Reason says why the command ended.
	Reason Reason
	// State describes how the command's own process ended, even after a timeout. It is nil if the process could not be
	// killed, or if other code has waited for it. With [Helper] and [HelperTree] it describes the helper, which ends in
	// the same way as the command.
	State *os.ProcessState

	// Stdout, Stderr and Combined are the output, as far as it was kept. Combined contains the output of both streams
	// in the order in which it was read, which may differ from the order in which it was written. With one pipe and in
	// a [Terminal], Combined is in the order of writing, Stdout equals it, and Stderr is empty.
	Stdout, Stderr, Combined Output
	// Spill describes the file with the output; see [Capture].
	Spill Spill
	// LongestGap is the longest time without output between the start and the end or stop of the command.
	LongestGap time.Duration
	// Unwritten is the number of bytes that were read from the command but not written to cmd.Stdout and cmd.Stderr,
	// because the writer failed or was too slow. The error of Wait says which of the two.
	Unwritten int64
	// Skipped is the number of bytes that the Each of Capture did not get because it was too slow, panicked or called
	// runtime.Goexit: the sum of Chunk.Skipped, and the bytes that were left at the end.
	Skipped int64

	// Message says in one line why the command was stopped, or that it ran out of memory. It is empty if Reason is
	// Exited.
	Message string

	// Input describes the command's wait for input when it was stopped. It is zero if the command was not known to
	// wait, or ended by itself.
	Input InputWait

	// Notices contains the states that the processes of the command have sent to the socket of [Notify].
	Notices Notices

	// Usage contains the time, memory and I/O that the processes have used.
	Usage Usage
	// Resources contains the limits that were in force, of those that the option [Resources] requested.
	Resources Resources

	// Tree lists the processes of the command when it was stopped, before they were asked to end. It is empty if the
	// command ended by itself or was aborted, and on systems other than Linux and Windows.
	Tree ProcessList

	// Stacks contains the first 256 KiB of the stacks that programs wrote when a limit fired; see [Stop]. They are not
	// part of Stdout, Stderr and Combined.
	Stacks Output

	// Killed lists the processes that were still running when the command had ended by itself, and that were killed
	// then. A process that ended by itself just before the kill may be in the list, and a process that was just
	// starting a program may be missing, although it was killed. With the Orphans of [Stop], Kept lists these processes
	// instead, which run on. Both are empty on systems other than Linux and Windows.
	Killed, Kept ProcessList

	// Escalated reports whether a process was still alive at the end of the grace and had to be killed. It is false if
	// there was no grace.
	Escalated bool
	// PipeHeld reports whether another process still held an output stream open shortly after the command had ended, or
	// when everything had been killed. The output of the command itself is complete; output that the other process
	// wrote later may be missing.
	PipeHeld bool
	// Survivors lists the ids of the processes that are still alive because the system did not kill them in time, or at
	// all. It is nil if no survivor is known. It does not include the processes that Orphans keeps. Where the system
	// shows no processes, a helper that has not finished in time is listed in place of the processes that it has yet to
	// kill.
	Survivors []int
	// Unidentified lists the ids of processes that may belong to the command but were left alone: they started after
	// the command, run as the same user or in the same control group, have lost their parent, and have no environment
	// or did not show it in time. On a busy machine, reading the environment of a process of low priority may take
	// seconds. A process whose environment lacks the variable that the command was given is not listed. If the
	// command's processes kept starting successors until the call had to return, the last ones that were seen are
	// included, although they may have ended. Only the Descendants and Helper containments have unidentified processes.
	Unidentified []int
	// Unanswered is the number of questions about the command's processes that the system had not answered when the
	// call returned, because a process or its file system hangs. Each question keeps a goroutine and a thread until it
	// is answered. The missing answers make Tree and Input incomplete, and work may go unnoticed. On systems other than
	// Linux and Windows it is 0.
	Unanswered int
	// Contained is the containment that was used. It is never empty. If /proc could not be read at the end, for example
	// because the host had no descriptors left, it is Group instead of Descendants.
	Contained Containment
	// Elapsed is the time from the call of Start until the result was complete, including the grace.
	Elapsed time.Duration

	left []ProcessInfo // the processes that were still running when the command had ended by itself
}

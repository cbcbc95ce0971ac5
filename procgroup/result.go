package procgroup

import (
	"os"
	"time"
)

// A Result describes how a command that was started has ended. It is complete when Wait
// returns, and does not change afterwards.
type Result struct {
	// ExitCode is timeout.ExitCode of the error that was returned with the Result: 0, the
	// command's own code, 128+n for a signal n, 124 for a timeout, 130 for an abort, or 153 for
	// TooMuchOutput.
	ExitCode int
	// Reason is why the command ended.
	Reason Reason
	// State is how the command's process itself ended, even after a timeout. It is nil if the
	// process could not be killed, or if other code has waited for it. With the Helper
	// containment it is the state of the helper, which ends in the same way as the command.
	State *os.ProcessState

	// Stdout, Stderr and Combined are the output, as far as it was kept. Combined has the
	// output of both streams in the order in which it was read, which may differ from the
	// order in which it was written. With one pipe and in a [Terminal] Combined has the order
	// of writing, Stdout is the same, and Stderr is empty.
	Stdout, Stderr, Combined Output
	// Spill is the file with all of the output; see [Capture].
	Spill Spill
	// LongestGap is the longest time without output, from the start until the command ended
	// or was stopped.
	LongestGap time.Duration
	// Unwritten is the number of bytes that were read from the command but not written to
	// cmd.Stdout and cmd.Stderr, because the writer failed or was too slow. The error of Wait says
	// which of the two.
	Unwritten int64
	// Skipped is the number of bytes that the Each of Capture did not get because it
	// was too slow: the sum of Chunk.Skipped, and the bytes that were left at the end.
	Skipped int64

	// Message says in one line why the command was stopped. It is empty if the command ended
	// by itself.
	Message string

	// Input says whether the command waited for input when it was stopped. It is zero if the
	// command ended by itself.
	Input InputWait

	// Notices are what the command has said of itself; see [Notify].
	Notices Notices

	// Usage is what the processes have used.
	Usage Usage
	// Resources are the limits of [Resources] that were in force.
	Resources Resources

	// Tree lists the processes of the command as they were when a limit fired, before they
	// were asked to end. It is empty if no limit fired, and on systems other than Linux and
	// Windows.
	Tree ProcessList

	// Stacks are the stacks that programs wrote when a limit fired; see [Stop]. They are not
	// part of Stdout, Stderr and Combined.
	Stacks Output

	// Killed are the processes that were still running when the command had ended by itself, and that were killed
	// then. A process that ended by itself just before the kill may be among them, and one that was just starting a
	// program may be missing, although it was killed. Kept are the processes that run on instead, with the Orphans
	// of [Stop]. Both are as in Tree, and are not known on systems other than Linux and Windows.
	Killed, Kept ProcessList

	// Escalated reports whether a process was still alive at the end of the grace and had to be
	// killed. It is false if there was no grace.
	Escalated bool
	// PipeHeld reports whether another process still held an output stream open shortly after
	// the command had ended, or when everything had been killed. The output of the command
	// itself is complete; output that the other process wrote later may be missing.
	PipeHeld bool
	// Survivors are the ids of the processes that are still alive because the system did not
	// kill them in time, or at all. It is nil if none is known. With Orphans it does not
	// include the processes that were kept. A helper that is slow is one of them where the system
	// shows no processes: it stands for those that it has yet to kill.
	Survivors []int
	// Unidentified are the ids of processes that may belong to the command but were left alone: they started after
	// the command, run as the same user or in the same control group, have lost their parent, and have no
	// environment or did not show it in time. On a busy machine, reading the environment of a process of low
	// priority may take seconds. A process that shows an environment without the variable that the command was
	// given is not listed. If the command's processes kept starting successors until the call had to return, the
	// last ones that were seen are included, although they may have ended. Only the Descendants and Helper
	// containments have unidentified processes.
	Unidentified []int
	// Unanswered is how many questions about the command's processes the system had not answered when
	// the call returned: the process or its file system hangs, such as one on a server that is away.
	// Each keeps a goroutine and a thread until it is answered. What was asked is missing: in Tree, and
	// in what is known of a wait for input and of work. Linux only; elsewhere it is 0.
	Unanswered int
	// Contained is the containment that was used. It is never empty. If /proc could not be
	// read at the end, for example because the host had no descriptors left, it is Group
	// instead of Descendants.
	Contained Containment
	// Elapsed is the time from the start to the end of the call, including the grace.
	Elapsed time.Duration

	left []ProcessInfo // the processes that were left when the command had ended by itself
}

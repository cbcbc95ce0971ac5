package procgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Reason says why a command ended. The zero Reason is Exited.
type Reason int

const (
	// Exited means that the command ended by itself, or by a signal that this package did not
	// send.
	Exited Reason = iota
	// IdleTimeout means that the idle limit stopped the command: there was no output and,
	// with an Activity, no work.
	IdleTimeout
	// TotalTimeout means that the total limit or the deadline of the context stopped the
	// command.
	TotalTimeout
	// Aborted means that the command was stopped because the caller's context was cancelled.
	Aborted
	// WaitingForInput means that the command was stopped because it waited for input; see
	// [Input].
	WaitingForInput
	// StoppedByTerminal means that the command was stopped because the terminal had stopped one of
	// its processes; see [ErrTerminal].
	StoppedByTerminal
	// OutOfMemory means that the command ended after the system had killed one of its processes
	// because memory ran out; see [ErrMemory].
	OutOfMemory
	// TooMuchOutput means that the command was stopped because it wrote too much; see
	// [Capture].
	TooMuchOutput
)

// String returns "exited", "idle timeout", "total timeout", "aborted", "waiting for
// input", "stopped by the terminal", "out of memory" or "too much output".
func (r Reason) String() string {
	switch r {
	case Exited:
		return "exited"
	case IdleTimeout:
		return "idle timeout"
	case TotalTimeout:
		return "total timeout"
	case Aborted:
		return "aborted"
	case WaitingForInput:
		return "waiting for input"
	case StoppedByTerminal:
		return "stopped by the terminal"
	case OutOfMemory:
		return "out of memory"
	case TooMuchOutput:
		return "too much output"
	}
	return "Reason(" + strconv.Itoa(int(r)) + ")"
}

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

	// Killed are the processes that were still running when the command had ended by itself, and
	// that were killed then. One that ended by itself just before the kill may be among them, and one
	// that was just starting a program may be missing, although it was killed. Kept are those that run
	// on instead, with the Orphans of [Stop]. Both are as in Tree, and are not known on systems other than
	// Linux and Windows.
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
	// include the processes that were kept.
	Survivors []int
	// Unidentified are the ids of processes that may belong to the command but were left alone: they started after
	// the command, run as the same user or in the same control group, have lost their parent, and have no environment or did not show it in
	// time. On a busy machine, reading the environment of a process of low priority may take seconds. A process
	// that shows an environment without the variable that the command was given is not listed. If the command's
	// processes kept starting successors until the call had to return, the last ones that were seen are included,
	// although they may have ended. Only the Descendants and Helper containments have unidentified processes.
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

	left []ProcessInfo // what was there when the command had ended by itself
}

// Text returns the result as text for a reader that sees nothing else of it, such as the model that
// called a tool: the Message, if there is one, and the exit code, each in a line of its own,
// [Result.Leftovers], and Combined as [Output.Text] returns it. If Text leaves something out and a file has all of the
// output (see [Capture]), a line before the output names the file.
func (r *Result) Text() string {
	var b strings.Builder
	if r.Message != "" {
		b.WriteString(r.Message + "\n")
	}
	fmt.Fprintf(&b, "Exit code %d.\n", r.ExitCode)
	b.WriteString(r.Leftovers())
	if r.Combined.Dropped > 0 && r.Spill.Path != "" {
		which := "All"
		if r.Spill.Err != nil {
			which = fmt.Sprintf("The first %d bytes", r.Spill.Bytes)
		}
		fmt.Fprintf(&b, "%s of the output: %s\n", which, r.Spill.Path)
	}
	b.WriteString(r.Combined.Text())
	return b.String()
}

func reason(stop *timeout.Error) Reason {
	switch {
	case stop == nil:
		return Exited
	case stop.Kind == timeout.KindIdle:
		return IdleTimeout
	case stop.Kind == timeout.KindTotal:
		return TotalTimeout
	case stopOf(stop) != nil:
		return stopOf(stop).reason
	}
	return Aborted
}

// message implements SPEC 6.8: the wording is the same for every limit, whether the command's own or an
// enclosing one.
func (p *Process) message(stop *timeout.Error) string {
	switch reason(stop) {
	case IdleTimeout:
		signs := "output."
		if p.activity.wanted() {
			signs = "output or work."
		}
		return stop.Tool + " process timed out after " + millis(stop.Limit) + "ms without " + signs
	case TotalTimeout:
		limit := stop.Limit
		if stop.Cause != nil && limit > 0 { // the rest of the caller's deadline: SPEC 3.3
			limit = max(limit.Round(time.Millisecond), time.Millisecond)
		}
		return stop.Tool + " process timed out after " + millis(limit) + "ms."
	case Aborted:
		return stop.Tool + " process was aborted."
	case WaitingForInput:
		return stop.Tool + " " + p.input.now().String()
	case StoppedByTerminal:
		return stop.Tool + " was stopped by the terminal."
	case TooMuchOutput:
		return fmt.Sprintf("%s wrote more than %d bytes.", stop.Tool, p.capture.Limit)
	}
	return ""
}

// millis formats d in milliseconds, as the shortest decimal number. A float64 is exact to the
// nanosecond up to 104 days.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

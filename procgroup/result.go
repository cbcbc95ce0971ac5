package procgroup

import (
	"os"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Reason says why a command ended.
type Reason int

const (
	// Exited: it ended by itself, or by a signal that was not sent from here.
	Exited Reason = iota
	// IdleTimeout: it was stopped because for the idle limit no output came, and, with
	// WithActivity, no work was seen.
	IdleTimeout
	// TotalTimeout: it was stopped at the total limit, or the deadline of the context.
	TotalTimeout
	// Aborted: it was stopped because the caller's context was cancelled.
	Aborted
)

// String returns "exited", "idle timeout", "total timeout" or "aborted".
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
	}
	return "Reason(" + strconv.Itoa(int(r)) + ")"
}

// A Result is how a command that was started ended. It does not change any more.
type Result struct {
	// ExitCode is timeout.ExitCode of the error that came with the Result: 0, the
	// command's own code, 128+n for a signal n, 124 for a timeout, 130 for an
	// abort.
	ExitCode int
	Reason   Reason
	// State is what the command itself really did, also after a timeout. It is nil if
	// the command could not be killed or was reaped by somebody else. With the Helper
	// containment it is the helper's, which ends as the command did.
	State *os.ProcessState

	// What was written, as far as it was kept. Combined has both streams in the order in
	// which they were read, which need not be that in which they were written. With
	// [WithOnePipe] it is, and Stdout has the same; Stderr is then empty.
	Stdout, Stderr, Combined Output
	// LongestGap is the longest time without output, from the start until the command
	// ended or was stopped.
	LongestGap time.Duration
	// Unwritten is how many bytes of the output that was read cmd.Stdout and cmd.Stderr did
	// not get: because they failed, which the error says, or because they did not take it
	// in time, which it says too.
	Unwritten int64
	// Skipped is how many bytes of output the callback of WithOutput did not get because
	// it was too slow: those that its chunks say, and what was left at the end.
	Skipped int64

	// Message says in one line why the command was stopped. It is empty if it ended
	// by itself.
	Message string

	// Tree is what the processes were doing when a limit fired, before they were asked to end.
	// It is empty if none did, and on systems other than Linux and Windows.
	Tree Tree

	// Escalated says that something was still alive when the grace was over, and had to
	// be killed. Without a grace it is false.
	Escalated bool
	// PipeHeld says that something still held an output stream open, a moment after the
	// command had ended or when everything had been killed. All that the command itself
	// wrote is there; what the holder wrote after that may be missing.
	PipeHeld bool
	// Survivors are the ids of the processes that were still alive, because the system
	// did not kill them in time or not at all. nil is none known. With WithOrphans they
	// are not looked for.
	Survivors []int
	// Unidentified are the ids of processes that may have been started by the command, or
	// not, and were left alone: they began after it, run as the same user, have lost their
	// parent, and do not show their environment, or not in time: on a busy machine one of low
	// priority may take seconds for that. Where the command's processes went on handing over
	// to children until the call had to return, those that were seen last are here, though they
	// may be gone. Only Descendants and Helper have them.
	Unidentified []int
	// Contained is what was in force; never Auto. It is Group in place of Descendants if
	// /proc could not be read at the end, for want of descriptors, say.
	Contained Containment
	// Elapsed is from the start to the end of the call, with the grace.
	Elapsed time.Duration
}

func reason(stop *timeout.Error) Reason {
	switch {
	case stop == nil:
		return Exited
	case stop.Kind == timeout.KindIdle:
		return IdleTimeout
	case stop.Kind == timeout.KindTotal:
		return TotalTimeout
	}
	return Aborted
}

// message is SPEC 6.8: one wording, whichever limit it was and whose.
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
		if stop.Cause != nil && limit > 0 { // what was left of a caller's deadline: SPEC 3.3
			limit = max(limit.Round(time.Millisecond), time.Millisecond)
		}
		return stop.Tool + " process timed out after " + millis(limit) + "ms."
	case Aborted:
		return stop.Tool + " process was aborted."
	}
	return ""
}

// millis is the shortest decimal form. Up to 104 days a float64 has the nanoseconds.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

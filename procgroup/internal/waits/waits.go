// Package waits detects that a tree of processes waits for input: that no process of the tree goes on without a line of
// input, or a signal. It examines what the threads wait for. A second look has to confirm the result of the first.
package waits

import "time"

// A State says whether a tree waits for input.
type State uint8

const (
	// None means that no wait was found, or that it was not confirmed yet.
	None State = iota
	// InputIfPrompted means that a process waits for input, and that none of its ancestors and descendants is running.
	// The tree waits for input if, in addition, the last line of its output is a prompt.
	InputIfPrompted
	// StoppedByTerminal means that the system has stopped a process because it has used the terminal from the
	// background. The process stays stopped until it is killed, or continued in the foreground.
	StoppedByTerminal
	// InputCertainly means that no process of the tree goes on without input or a signal.
	InputCertainly
)

// A Look is the result of a call of a [Meter].
type Look struct {
	State  State
	Pid    int           // the process that waits or was stopped; 0 with None
	Secret bool          // the input is a terminal without echo
	Next   time.Duration // time until the next call is due; see UntilLook
}

// A Meter examines whether a tree waits for input, or was stopped by the terminal. It returns [None] until a second
// look has found the same as the first. A look at a tree that has done nothing since the last one takes about a
// microsecond per process. A call may block, even for ever. A Meter is for one goroutine at a time, and may be called
// at any time before the Close of the tree.
type Meter func() Look

// LookEvery is the time without output before the first look at a tree, and the time from that look to the second.
const LookEvery = 300 * time.Millisecond

// lookGrid is the interval of the times at which all trees are looked at. To wake up for each tree separately took ten
// times as much processor time as the looks.
const lookGrid = 100 * time.Millisecond

// UntilLook returns the time until a look that is due in d. It moves the look by at most lookGrid/2, earlier or later,
// so that it takes place together with the looks at other trees.
func UntilLook(d time.Duration) time.Duration {
	now := time.Duration(time.Now().UnixNano())
	return (now + d).Round(lookGrid) - now
}

// UntilSilent is like UntilLook, but never moves the look to an earlier time.
func UntilSilent(d time.Duration) time.Duration { return UntilLook(d + lookGrid/2 - 1) }

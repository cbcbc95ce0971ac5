// Package waits finds out whether a tree of processes waits for input: whether nothing but a line that somebody types, or
// a signal, makes any of it go on. It looks at what the threads wait for, and confirms each look by a second look.
package waits

import "time"

// A State says whether a tree waits for input.
type State uint8

const (
	None State = iota
	// InputIfPrompted means that a process waits for input, and all its ancestors and descendants wait. So the
	// tree waits if the last line of its output is a prompt.
	InputIfPrompted
	// StoppedByTerminal means that a process was stopped because it asked the terminal for something from the
	// background. It stays so until it is killed or continued in the foreground.
	StoppedByTerminal
	// InputCertainly means that nothing but input, or a signal, makes anything go on.
	InputCertainly
)

// A Look is the result of a call of a [Meter].
type Look struct {
	State  State
	Pid    int           // the process that waits, or was stopped
	Secret bool          // the input is a terminal without echo
	Next   time.Duration // until the next look; see [UntilLook]
}

// A Meter looks whether a tree waits for input, or was stopped by the terminal. It finds [None] until a second
// look has found the same as the first. A look at a tree that has done nothing since the last one costs about a
// microsecond for each process. A Meter is for one goroutine at a time, and may be called at any time before Close.
type Meter func() Look

// LookEvery is the time of silence before the first look at a tree, and the time from it to the second look.
const LookEvery = 300 * time.Millisecond

// lookGrid is the interval between the looks at all trees. Waking up for each tree cost ten times as much as the looks.
const lookGrid = 100 * time.Millisecond

// UntilLook returns the time until a look that is due in d, at most lookGrid/2 earlier or later: it takes place together
// with the looks at other trees.
func UntilLook(d time.Duration) time.Duration {
	now := time.Duration(time.Now().UnixNano())
	return (now + d).Round(lookGrid) - now
}

// UntilSilent returns the time until a look that is due in d or later.
func UntilSilent(d time.Duration) time.Duration { return UntilLook(d + lookGrid/2 - 1) }

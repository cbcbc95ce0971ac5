package proctree

import "os/exec"

// A Waiting says whether a tree waits for input.
type Waiting uint8

const (
	NotWaiting Waiting = iota
	// InputIfPrompted means that a process waits for input, and all that is above and below it only waits. So the
	// tree waits if the last line of its output is a prompt.
	InputIfPrompted
	// StoppedByTerminal means that a process was stopped because it asked the terminal for something from the
	// background. It stays so until it is killed or continued in the foreground.
	StoppedByTerminal
	// InputCertainly means that nothing but input, or a signal, makes anything go on.
	InputCertainly
)

// An InputMeter looks whether a tree waits for input, or was stopped by the terminal, and returns the process. It is not [NotWaiting]
// before a second look has found the same as the first. A look at a tree that has done nothing since the last one
// costs about a microsecond for each process. It is for one goroutine at a time, and may be called at any time
// before Close.
// secret reports that the input is a terminal that does not echo it.
type InputMeter func() (w Waiting, pid int, secret bool)

// HasTerminal reports whether a command that was started may have the terminal of this process.
func HasTerminal(cmd *exec.Cmd) bool { return hasTerminal(cmd.SysProcAttr) }

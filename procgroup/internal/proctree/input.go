package proctree

// A Waiting says whether a tree waits for input.
type Waiting uint8

const (
	NotWaiting Waiting = iota
	// InputIfPrompted means that a process waits for input, and all that is above and below it only waits. So the
	// tree waits if the last line of its output is a prompt.
	InputIfPrompted
	// InputCertainly means that nothing but input, or a signal, makes anything go on.
	InputCertainly
)

// An InputMeter looks whether a tree waits for input, and returns the process that does. It is not [NotWaiting]
// before a second look has found the same as the first. A look at a tree that has done nothing since the last one
// costs about a microsecond for each process. It is for one goroutine at a time, and may be called at any time
// before Close.
// secret reports that the input is a terminal that does not echo it.
type InputMeter func() (w Waiting, pid int, secret bool)

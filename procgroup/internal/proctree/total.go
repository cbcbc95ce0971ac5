package proctree

import "time"

// A Total is what all processes of a tree have used, as far as the containment counts it. A nil field is not
// known.
type Total struct {
	CPU       *time.Duration
	Throttled *time.Duration // how long processes were kept from running by a limit on processor time
	Memory    *int64         // the most bytes at once
	Processes *int64         // the most at once
	// Read and Written are bytes: on Linux from and to disks, on Windows by system calls.
	Read, Written *int64
	// Starved is whether the system has killed one of the processes for want of memory.
	Starved bool
	// AtLimit reports that the tree had reached a limit of memory of its own then, and not an enclosing one.
	AtLimit bool
}

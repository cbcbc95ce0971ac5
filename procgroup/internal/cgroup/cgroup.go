// Package cgroup makes a control group (version 2) for one command, limits what its processes use, counts it, and kills
// them at one stroke. It knows no command but the one that it starts.
package cgroup

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
	// Starved reports whether the system has killed one of the processes for lack of memory.
	Starved bool
	// AtLimit reports whether the tree had then reached its own limit of memory, and not an enclosing one.
	AtLimit bool
}

// Limits are the most that a tree may use. A field of 0 means no limit.
type Limits struct {
	Memory    int64   // bytes
	Processes int64   // threads count as processes
	CPU       float64 // processors
	// BestEffort lets a tree start without the limits that are not available.
	BestEffort bool
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.Memory > 0 || l.Processes > 0 || l.CPU > 0 }

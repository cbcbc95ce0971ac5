// Package cgroup creates a control group (version 2) for a command. The control group limits and counts the resources
// of the command's processes, and all of them can be killed at once. On systems other than Linux the package has only
// the types Total and Limits.
package cgroup

import "time"

// A Total has the resources that all processes of a tree have used together. A nil field was not counted.
type Total struct {
	CPU       *time.Duration // processor time
	Throttled *time.Duration // time for which a limit on processor time kept processes from running
	Memory    *int64         // peak, in bytes
	Processes *int64         // peak number of processes; each thread counts as one
	// Read and Written are bytes: on Linux from and to disks, on Windows by system calls.
	Read, Written *int64
	// Starved reports whether the system has killed one of the processes for lack of memory.
	Starved bool
	// AtLimit reports whether Starved is set and the tree had reached its own memory limit, and not only that of an
	// enclosing control group.
	AtLimit bool
}

// Limits are the most that all processes of a tree may use together. A field of 0 means no limit.
type Limits struct {
	Memory    int64   // bytes
	Processes int64   // number of processes; each thread counts as one
	CPU       float64 // number of processors, such as 0.5
	// BestEffort lets a tree start without the limits that are not available.
	BestEffort bool
}

// Any reports whether l has a limit.
func (l Limits) Any() bool { return l.Memory > 0 || l.Processes > 0 || l.CPU > 0 }

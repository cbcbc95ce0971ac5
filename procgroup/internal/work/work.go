// Package work measures how much a tree of processes works: the processor time and the bytes that the tree has used
// since the last measurement. When a parent waits for a child that has ended, the parent takes over the child's
// counters; nothing counts twice then. The package also decides which rates of such work count as a sign of life.
package work

import "time"

// A Meter returns what a tree of processes has used since the last call that returned true or, the first time, since
// the start. ok is false if nothing can be read now; the next call then covers that time too. A call may block, even
// for ever. A Meter is for one goroutine at a time; several Meters of one tree may be called concurrently.
type Meter func() (used Usage, ok bool)

// A Usage has what processes have used over a period.
type Usage struct {
	CPU time.Duration // processor time
	IO  uint64        // bytes read and written
	// Net is the number of bytes that TCP connections have received, plus those sent and acknowledged. Linux only.
	Net uint64
	// Faults is the number of page faults. The start of a program causes some, so they show how much of CPU and IO was
	// used to start programs. Linux only.
	Faults uint64
	// FaultCost is the time that a page fault takes on this machine, or 0 if it cannot be measured. Linux only.
	FaultCost time.Duration
	// Running reports whether, at the end of the period, a process was running, ready to run, waiting for a disk, or
	// starting programs. Linux only.
	Running bool
	// Starved is the part of the period, from 0 to 1, in which a process was ready to run but got no processor. Without
	// a control group, it is that of the process with the largest part. Linux only.
	Starved float64
}

// Package work measures how much a tree of processes works: what it has used since the last look, so that nothing
// counts twice and nothing is missed when a process ends and its parent takes over what it had used. It also
// says from which rates that counts as a sign of life.
package work

import "time"

// A Meter returns what a tree of processes has used since the last call or, the first time, since the start. If
// nothing can be read now, ok is false, and the next call covers that time, too. A Meter is for one goroutine at a
// time; several Meters of one tree may be called at the same time.
type Meter func() (used Usage, ok bool)

// A Usage says what processes have used.
type Usage struct {
	CPU time.Duration
	IO  uint64 // bytes read and written
	// Net is how many bytes TCP connections have received, and had acknowledged. Linux only.
	Net uint64
	// Faults is how many page faults there were. Starting a program takes some, so they tell how much of
	// the processor time and of the bytes was for starting. Linux only.
	Faults uint64
	// FaultCost is how long a page fault takes on this machine, and 0 if that is not known. Linux only.
	FaultCost time.Duration
	// Running reports whether a process was running, ready to run, or waiting for a disk. Linux only.
	Running bool
	// Starved is the part of the time, 0 to 1, in which the process that was worst off was ready to
	// run and got no processor.
	Starved float64
}

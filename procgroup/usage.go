package procgroup

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// A Usage contains the resources that the processes of a command have used from its start to its end. A figure that the
// system does not provide is nil.
//
// If a control group or a job object counts a figure, it covers the whole tree, however the command ended. Otherwise
// CPU, Largest, Read and Written cover the command's own process and the descendants that have been waited for by their
// parents, up to that process. These figures are then nil if the command was stopped, because they would lack the
// killed processes, and with [Helper] and [HelperTree], because they would include the helper.
type Usage struct {
	// CPU is the processor time, of all processors together.
	CPU *time.Duration
	// Throttled is the time for which [Resources].CPU kept processes from running.
	Throttled *time.Duration
	// Memory is the peak memory of all processes together, in bytes. On Linux it includes file caches, and is nil
	// unless the control group has a memory controller; see [Resources]. On Windows it is the committed memory.
	Memory *int64
	// Largest is the peak memory of the largest single process, in bytes (the resident set). Linux only. It is nil if
	// the peak was hardly above the peak of this program: a new process starts with the memory of this program, and the
	// system counts that memory as well.
	Largest *int64
	// Processes is the largest number of processes at once. Threads count as processes. Linux only, if the control
	// group has a pids controller.
	Processes *int64
	// Read and Written are the numbers of bytes that were read and written: on Linux from and to disks, on Windows by
	// any system call that reads or writes.
	Read, Written *int64
}

// String returns the figures that are not nil, on one line, as in
//
//	processor time 1.2s, memory 34 MiB, 3 processes, read 0 bytes, wrote 8 KiB
//
// It returns "" if all figures are nil.
func (u Usage) String() string {
	var known []string
	duration := func(what string, d *time.Duration) {
		if d != nil {
			known = append(known, fmt.Sprintf("%s %v", what, d.Round(time.Millisecond)))
		}
	}
	size := func(what string, n *int64) {
		if n != nil {
			known = append(known, what+" "+byteCount(*n))
		}
	}
	duration("processor time", u.CPU)
	duration("throttled", u.Throttled)
	size("memory", u.Memory)
	size("largest process", u.Largest)
	if u.Processes != nil {
		known = append(known, fmt.Sprintf("%d processes", *u.Processes))
	}
	size("read", u.Read)
	size("wrote", u.Written)
	return strings.Join(known, ", ")
}

// byteCount formats n exactly, in the largest unit of which it is a whole number.
func byteCount(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for n != 0 && n%1024 == 0 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	return fmt.Sprintf("%d %s", n, units[0])
}

// usage combines total, the figures of the containment, with the figures of leader, which it uses where total has none.
// leader is nil if its figures are not to be used. host is the peak resident set of this process, with which the leader
// began.
func usage(total proctree.Total, leader *os.ProcessState, host int64) Usage {
	u := Usage{
		CPU: total.CPU, Throttled: total.Throttled, Memory: total.Memory, Processes: total.Processes,
		Read: total.Read, Written: total.Written,
	}
	if leader == nil {
		return u
	}
	if u.CPU == nil {
		cpu := leader.UserTime() + leader.SystemTime()
		u.CPU = &cpu
	}
	peak, read, written, ok := rusage(leader)
	if !ok {
		return u
	}
	// The margin is needed because the system adds up a counter of each processor, so that readings vary.
	if peak-host > host/8+1<<20 {
		u.Largest = &peak
	}
	if u.Read == nil && countsDisks() {
		u.Read, u.Written = &read, &written
	}
	return u
}

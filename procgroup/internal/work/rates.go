package work

import "time"

// DefaultCPURate is the rate of processor time from which work counts, unless [Rates] sets another: 1 % of one core.
const DefaultCPURate = 0.01

// The rates from which bytes count, in bytes a second.
const (
	ioRate  = 64 << 10 // copying a file exceeds it; reading a small file once a second does not
	netRate = 8 << 10  // a slow download exceeds it; keep-alive messages and a small request once a second do not
)

// Starting a program costs processor time and bytes, in proportion to its page faults. Among 30 programs,
// from true(1) to curl(1), ssh(1) and a compiler, the small ones took 9 to 18 µs and 6 to 170 bytes per
// fault, up to 30 µs on a busy machine, and Python 26 µs and 700 bytes. Linux counts the faults, including
// those of children, so this much is subtracted for each of them.
//
// Where the fault itself is slow it takes more: in a virtual machine on which a fault took 14 µs, small programs took
// 33 to 43 µs per fault and up to 77 µs beside busy loops, and a shell that polls five times a second used 5 % of a
// core. So what counts as starting grows with the cost of a fault.
//
// A tree that only starts programs, one after the other, may still be working: find -exec, make and
// configure scripts are such trees. A shell that polls waits in between, so it uses far less and is asleep
// at nearly every look. On a busy machine only the latter distinguishes the two.
const (
	startingCPU = 50 * time.Microsecond
	startingIO  = 1 << 10

	busyCPURate = 10 * DefaultCPURate
	busyIORate  = 64 * ioRate // Python alone reads 1.3 MiB

	// A fault that takes this long doubles startingCPU. It adds a half to busyCPURate: on that machine, beside six
	// busy loops on 2 cores, trees that only started programs had 15 to 40 % of a core between two looks.
	slowFault = 14 * time.Microsecond
)

// Rates selects the kinds of work that count as a sign of life, and sets the rate of processor time from which it
// counts, as a fraction of one core. The rates of bytes are constants.
type Rates struct {
	CPU     bool
	CPURate float64
	IO      bool
}

// Reached reports whether the usage over a period is a sign of life. Time in which a process was ready to work but got
// no processor is excluded: on a busy machine a tree that works may be far below a rate that a tree that polls does not
// reach there either. steady reports that a process was running at several examinations in a row.
func (r Rates) Reached(used Usage, in time.Duration, steady bool) bool {
	seconds, faults := in.Seconds()*(1-used.Starved), float64(used.Faults)
	slow := float64(used.FaultCost) / float64(slowFault)
	works := func(used, starting, rate, busyRate float64) bool {
		if used == 0 || used < rate*seconds {
			return false
		}
		return steady || used-starting >= rate*seconds || used >= busyRate*seconds
	}
	return r.CPU && works(used.CPU.Seconds(), faults*startingCPU.Seconds()*(1+slow), r.CPURate, busyCPURate*(1+slow/2)) ||
		r.IO && works(float64(used.IO), faults*startingIO, ioRate, busyIORate) ||
		r.IO && works(float64(used.Net), 0, netRate, 0)
}

package work

import "time"

// DefaultCPURate is the usual value of Rates.CPURate: 1 % of one core.
const DefaultCPURate = 0.01

// ioRate and netRate are the rates, in bytes per second, from which Usage.IO and Usage.Net count as a sign of life.
const (
	ioRate  = 64 << 10 // copying a file exceeds it; reading a small file once a second does not
	netRate = 8 << 10  // a slow download exceeds it; keep-alive messages and a small request once a second do not
)

// startingCPU and startingIO are subtracted for each page fault, because the start of a program uses processor time and
// bytes in proportion to its faults. Among 30 programs, from true(1) to curl(1), ssh(1) and a compiler, the small ones
// took 9 to 18 µs and 6 to 170 bytes per fault, up to 30 µs on a busy machine, and Python 26 µs and 700 bytes.
//
// Where faults are slow, a start takes longer: in a virtual machine on which a fault took 14 µs, small programs took 33
// to 43 µs per fault, and up to 77 µs beside busy loops; a shell that polled five times a second used 5 % of a core. So
// the time that is subtracted grows with the cost of a fault.
//
// A tree that only starts programs, one after the other, may be working, such as find -exec, make or a configure
// script. A shell that polls sleeps in between, so it uses far less, and it is asleep at nearly every look. On a busy
// machine only the latter distinguishes the two. From busyCPURate and busyIORate on, nothing is subtracted.
const (
	startingCPU = 50 * time.Microsecond
	startingIO  = 1 << 10

	busyCPURate = 10 * DefaultCPURate
	busyIORate  = 64 * ioRate // the start of Python reads 1.3 MiB

	// slowFault is the cost of a fault that doubles startingCPU and raises busyCPURate by half. On the virtual machine
	// above, beside six busy loops on 2 cores, trees that only started programs had 15 to 40 % of a core between looks.
	slowFault = 14 * time.Microsecond
)

// Rates selects the kinds of work that count as a sign of life.
type Rates struct {
	CPU     bool    // processor time counts, from CPURate on
	CPURate float64 // as a fraction of one core
	IO      bool    // bytes count, from ioRate or netRate on
}

// Reached reports whether the usage in a period of length in is a sign of life. steady says that a process was running
// at several looks in a row; then nothing is subtracted for the start of programs. The period counts without the part
// in which a process got no processor: on a busy machine, a tree that works may otherwise be far below the rate.
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

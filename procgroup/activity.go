package procgroup

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The rates from which work counts as a sign of life. An [Activity] may set another rate of processor time.
const (
	defaultCPURate = 0.01     // 1 % of one core
	ioRate         = 64 << 10 // copying a file exceeds it; reading a small file once a second does not
	netRate        = 8 << 10  // a slow download exceeds it; keep-alive messages and a small request once a second do not
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

	busyCPURate = 10 * defaultCPURate
	busyIORate  = 64 * ioRate // Python alone reads 1.3 MiB

	// A fault that takes this long doubles startingCPU. It adds a half to busyCPURate: on that machine, beside six
	// busy loops on 2 cores, trees that only started programs had 15 to 40 % of a core between two looks.
	slowFault = 14 * time.Microsecond
)

// An Activity selects the work of a command's processes that counts as a sign of life, in addition to output. It is
// an [Option]. The zero Activity selects none. With it a compiler that prints nothing is not taken for stuck. Each
// kind of work counts from a rate on, measured over the whole process tree.
//
// The tree is examined six times per idle limit (the smallest among those of the command's execution and the
// enclosing executions), and only while there is no output. Without an idle limit it is never examined. The idle
// limit never stops a tree that works all the time. A tree that neither prints nor works is stopped when the idle
// limit has passed, never earlier, and at most a quarter of the limit later, because its last work may be noticed
// late. If the limit expires on a machine too busy to have examined the tree in time, the decision waits for the
// next examination, for a quarter of the limit or 2 s, whichever is longer. If the total limit expires meanwhile,
// the outcome is a total timeout.
//
// The page of the package says what is measured, in which containment, and that starting small programs is not work
// on Linux. On systems other than Linux and Windows, Start returns an error that wraps [errors.ErrUnsupported]. If
// CPURate is negative or not a number, it returns a [*timeout.ConfigError].
type Activity struct {
	// CPU selects processor time, from CPURate on: a fraction of one core, 0 means 0.01.
	CPU     bool
	CPURate float64
	// IO selects bytes read and written, from 64 KiB a second on, and, on Linux, bytes carried by TCP connections, from 8
	// KiB a second on.
	IO bool
}

// isSet reports whether a selects any kind of work.
func (a *Activity) isSet() bool { return a.CPU || a.IO }

// Check returns the error that [Start] and [Observe] would return for a: a rate is invalid,
// or the system cannot measure the work. It returns nil if a can be used.
func (a Activity) Check() error { return a.check() }

// check implements Check, and sets the default rate.
func (a *Activity) check() error {
	if a.CPURate < 0 || math.IsNaN(a.CPURate) || math.IsInf(a.CPURate, 0) {
		return &timeout.ConfigError{Key: "Activity.CPURate", Value: fmt.Sprint(a.CPURate), Accepted: "a positive number, or 0 for the default"}
	}
	a.CPURate = cmp.Or(a.CPURate, defaultCPURate)
	if !a.isSet() {
		return nil
	}
	if err := work.CanMeter(a.IO); err != nil {
		return fmt.Errorf("procgroup: Activity: %w", err)
	}
	return nil
}

// enough reports whether the usage over a period is a sign of life. Time in which a process was
// ready to work but got no processor is excluded: on a busy machine a tree that works may be far
// below a rate that a tree that polls does not reach there either. steady reports that a process
// was running at several looks in a row.
func (a *Activity) enough(used work.Usage, in time.Duration, steady bool) bool {
	seconds, faults := in.Seconds()*(1-used.Starved), float64(used.Faults)
	slow := float64(used.FaultCost) / float64(slowFault)
	works := func(used, starting, rate, busyRate float64) bool {
		if used == 0 || used < rate*seconds {
			return false
		}
		return steady || used-starting >= rate*seconds || used >= busyRate*seconds
	}
	return a.CPU && works(used.CPU.Seconds(), faults*startingCPU.Seconds()*(1+slow), a.CPURate, busyCPURate*(1+slow/2)) ||
		a.IO && works(float64(used.IO), faults*startingIO, ioRate, busyIORate) ||
		a.IO && works(float64(used.Net), 0, netRate, 0)
}

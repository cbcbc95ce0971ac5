package procgroup

import (
	"fmt"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The rates from which work counts, unless an [Activity] says otherwise.
const (
	// DefaultCPURate is 1 % of one core.
	DefaultCPURate = 0.01
	// DefaultIORate is 64 KiB per second. A copy exceeds that, and a program that reads a small
	// file every second to see whether it has changed does not.
	DefaultIORate = 64 << 10
	// DefaultNetRate is 8 KiB per second. A slow download exceeds that; keep-alive messages, and
	// a small question to a server every second, do not.
	DefaultNetRate = 8 << 10
)

// Starting a program costs processor time and bytes, in proportion to its page faults. Of 30 programs, from
// true(1) to curl(1), ssh(1) and a compiler, the small ones took 9 to 18 µs and 6 to 170 bytes for each
// fault, up to 30 µs on a busy machine, and Python 26 µs and 700 bytes. Linux counts the faults, of children
// too, and so this much is taken off for each.
//
// A tree that does nothing but start programs, one after the other, is at work all the same: find -exec,
// make and configure scripts are such trees. A shell that polls waits in between. So it uses far less, and
// is asleep at nearly every look; on a busy machine only the latter tells the two apart.
const (
	startingCPU = 50 * time.Microsecond
	startingIO  = 1 << 10

	busyCPURate = 10 * DefaultCPURate
	busyIORate  = 64 * DefaultIORate // Python alone reads 1.3 MiB
)

// An Activity says what work of a command's processes is a sign of life, and from which
// rate on. The zero Activity is none: only output is.
type Activity struct {
	CPU bool // processor time
	IO  bool // bytes read and written, and carried by TCP connections

	CPURate float64 // of one core; 0 is DefaultCPURate
	IORate  float64 // bytes per second, read and written together; 0 is DefaultIORate
	NetRate float64 // bytes per second, received and sent together; 0 is DefaultNetRate. Linux only
}

// WithActivity makes work of the whole tree a heartbeat, as output is, so that a compiler
// that says nothing is not taken for stuck: processor time, bytes read and written, or
// both, each from a rate on.
//
// It is looked at six times per idle limit, the smallest one of the executions around, and
// only while there is no output; without an idle limit never. A tree that works all the
// time is never stopped by the idle limit, and one that does nothing is stopped when
// neither output nor work was seen for the idle limit. As the last work may be noticed late,
// that is up to a quarter of the idle limit after it was due, and never before. A limit that
// falls due on a machine too busy to have looked in time waits for a look, a quarter of the
// limit at most, or 2 s where that is more; a total that falls due meanwhile is the outcome.
//
// Rates are of the time in which the tree could work: on Linux, time in which one of its
// processes waited for a processor does not count.
//
// Bytes are those of reads and writes by system calls, pipes and files in memory included,
// or from and to disks, as with files that are mapped, whichever is more. The same byte may
// count for each process that it passes through.
//
// On Linux, the bytes that TCP connections of the tree have received, and those sent that were
// acknowledged, count from NetRate on, whichever system call moves them: a download into
// memory is work. Not seen are UDP, and so QUIC, MPTCP, connections in another network
// namespace, connections that both begin and end between two looks, descriptors of the tree
// beyond the first 4096, and what goes through Unix sockets by recv(2) and send(2).
//
// Starting programs is not work on Linux: a shell that starts a small one five times a second,
// to see whether a lock is free, is idle. Page faults tell how much of the processor time and
// of the bytes was for starting. That much counts only from 10 % of one core and 4 MiB per
// second on, or where two looks in a row have seen a process run: find -exec, make and
// configure scripts hardly do anything but start programs, and are at work. On Windows
// starting counts.
//
// On Linux, processor time comes from the control group, where [Result.Contained] is
// Cgroup, and bytes from the members, in /proc, and the group. With the other containments
// both come from the members as far as they are found; what has ended counts once its
// parent has waited for it. The bytes of what runs as another user are not seen, nor what
// [Result.Unidentified] lists. On Windows
// the job object tells. Other systems do not: there Start returns an error in whose tree
// [errors.ErrUnsupported] is found.
//
// A rate that is negative or not a number is an error of Start, a [*timeout.ConfigError].
func WithActivity(a Activity) Option {
	return optionFunc(func(s *settings) { s.activity = a })
}

// wanted reports whether work counts at all.
func (a *Activity) wanted() bool { return a.CPU || a.IO }

// Check returns the error that Start and [Observe] would have for a: a rate that makes no
// sense, or a system that cannot tell.
func (a Activity) Check() error { return a.check() }

// check is Check, and fills in the defaults.
func (a *Activity) check() error {
	for _, rate := range []struct {
		name  string
		value *float64
		least float64
	}{
		{"CPURate", &a.CPURate, DefaultCPURate},
		{"IORate", &a.IORate, DefaultIORate},
		{"NetRate", &a.NetRate, DefaultNetRate},
	} {
		if v := *rate.value; v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return &timeout.ConfigError{Key: "WithActivity: " + rate.name, Value: fmt.Sprint(v), Accepted: "a number above 0, or 0 for the default"}
		}
		if *rate.value == 0 {
			*rate.value = rate.least
		}
	}
	if !a.wanted() {
		return nil
	}
	if err := proctree.CanMeter(a.IO); err != nil {
		return fmt.Errorf("procgroup: WithActivity: %w", err)
	}
	return nil
}

// enough reports whether what was used in a stretch of time is a sign of life. Time in which
// a process was ready to work and got no processor does not count: on a busy machine what
// works may be far below a rate that one polling now and then, there too, does not reach. steady is that
// something was running at this look and at the one before.
func (a *Activity) enough(used proctree.Usage, in time.Duration, steady bool) bool {
	seconds, faults := in.Seconds()*(1-used.Starved), float64(used.Faults)
	works := func(used, starting, rate, busyRate float64) bool {
		if used == 0 || used < rate*seconds {
			return false
		}
		return steady || used-starting >= rate*seconds || used >= busyRate*seconds
	}
	return a.CPU && works(used.CPU.Seconds(), faults*startingCPU.Seconds(), a.CPURate, busyCPURate) ||
		a.IO && works(float64(used.IO), faults*startingIO, a.IORate, busyIORate) ||
		a.IO && works(float64(used.Net), 0, a.NetRate, 0)
}

package procgroup

import (
	"math"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rusage returns the peak resident set, and the bytes read from and written to disks, of a process that was waited for
// and of the descendants that it has waited for. ok is false if state has no such figures.
func rusage(state *os.ProcessState) (peak, read, written int64, ok bool) {
	u, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || u == nil {
		return 0, 0, 0, false
	}
	return int64(u.Maxrss) << 10, int64(u.Inblock) * 512, int64(u.Oublock) * 512, true
}

// countsDisks reports whether this kernel counts the bytes from and to disks of each process. If not, rusage returns 0
// for them.
var countsDisks = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/io")
	return err == nil
})

// hostPeak returns the peak resident set of this process. The peak of a process that it has just started is no larger
// until that process executes its program. If the system does not tell, hostPeak returns a huge number, so that no peak
// exceeds it.
func hostPeak() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return math.MaxInt64 / 2
	}
	return int64(u.Maxrss) << 10
}

package procgroup

import (
	"math"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rusage returns the largest resident set and the bytes from and to disks of a process that was waited for and of
// the descendants that it has waited for.
func rusage(state *os.ProcessState) (peak, read, written int64, ok bool) {
	u, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || u == nil {
		return 0, 0, 0, false
	}
	return int64(u.Maxrss) << 10, int64(u.Inblock) * 512, int64(u.Oublock) * 512, true
}

// countsDisks reports whether this kernel counts the bytes of each process. Otherwise they would be 0.
var countsDisks = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/io")
	return err == nil
})

// hostPeak returns the largest resident set that this process has had. After a start, that is what the new process
// has taken over as its own, or more.
func hostPeak() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return math.MaxInt64 / 2
	}
	return int64(u.Maxrss) << 10
}

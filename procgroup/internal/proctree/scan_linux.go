package proctree

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

// These make commands that look at the same time share one look: 200 that end together must
// not read all of /proc 200 times.
var (
	glances, scans, lists, recalls coalesce.Call[[]proc]
	looks                          coalesce.Call[listing]
)

// together is how far apart looks at work may begin that share a list. The members in it are read when
// each has it, so that it only lacks what has begun since.
const together = 100 * time.Millisecond

// A listing is a list of processes, and whether it has all of them.
type listing struct {
	all      []proc
	complete bool
}

// scan lists the processes, with their environments. It has begun after the call. nil is that
// /proc cannot be read. The list is others' too, and must not be changed.
func scan() []proc {
	all, _ := scans.Do(func() ([]proc, bool) { return readAll(lateTime), true })
	return all
}

// scanQuickly is scan, and waits for no process that is slow to show its environment.
func scanQuickly() []proc {
	all, _ := glances.Do(func() ([]proc, bool) { return readAll(glance), true })
	return all
}

// list is scan without the environments, for who has no use for them.
func list() []proc {
	all, _ := lists.Do(func() ([]proc, bool) { return readStatuses(), true })
	return all
}

// listAll is list for who looks at work, and has to know whether it is complete.
func listAll() (all []proc, complete bool) {
	l, _ := looks.Join(together, func() (listing, bool) {
		var r procReader
		all, complete := r.each(allPids(), always)
		return listing{all, complete && len(all) > 0}, true
	})
	return l.all, l.complete
}

var hostStarted atomic.Uint64

// hostStart is when this process began: nothing that it has started is older. It is 0
// where that cannot be read, which may be for want of a descriptor, and pass.
func hostStart() uint64 {
	if start := hostStarted.Load(); start > 0 {
		return start
	}
	var r procReader
	p, ok := r.get(os.Getpid())
	if !ok {
		return 0
	}
	hostStarted.Store(p.start)
	return p.start
}

// readAll reads all processes but this one, with the environments of those that it may have started.
// It returns nil where it was short of descriptors: who is not seen is not killed.
func readAll(late time.Duration) []proc {
	var r procReader
	all, _ := r.eachWithEnviron(newWaiting(late), allPids(), hostStart(), always)
	if r.short {
		return nil
	}
	return all
}

// readStatuses reads all processes but this one, without environments, as far as there are descriptors.
func readStatuses() []proc {
	var r procReader
	all, _ := r.each(allPids(), always)
	return all
}

func always() bool { return true }

// allPids lists all processes but this one. There are none where /proc cannot be read.
func allPids() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	pids = make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != self {
			pids = append(pids, pid)
		}
	}
	return pids
}

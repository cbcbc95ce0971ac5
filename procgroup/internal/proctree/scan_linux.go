package proctree

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Commands that look at the same time share one look: 200 that end together must not read all of /proc
// 200 times.
var (
	quickScans, scans, recalls coalesce.Call[[]proc]
	lists, looks               coalesce.Call[listing]
)

// How long a look waits for processes that are slow to show their environments. A process that is late then may
// or may not be a member.
const (
	// quickPatience is for when there is something to kill, which may fork meanwhile.
	quickPatience = 10 * time.Millisecond
	// viewPatience is for a view of the tree, which stands between a limit and the signal.
	viewPatience = 30 * time.Millisecond
	// fullPatience is for all other looks.
	fullPatience = 100 * time.Millisecond
)

// together is how far apart looks at work may begin that share a list. The members in the list are read when
// each has it, so that it only lacks what has begun since.
const together = 100 * time.Millisecond

// A listing is a list of processes, and whether it has all of them.
type listing struct {
	all      []proc
	complete bool
}

// scan lists the processes with their environments, as they are after the call. It returns nil if /proc cannot be
// read. Others have the list too, so it must not be changed.
func scan() []proc {
	all, _ := scans.Do(func() ([]proc, bool) { return readAll(fullPatience), true })
	return all
}

// scanQuickly is scan with little patience for processes that are slow to show their environments.
func scanQuickly() []proc {
	all, _ := quickScans.Do(func() ([]proc, bool) { return readAll(quickPatience), true })
	return all
}

// list is scan without the environments. It is not complete if one of the processes was not shown in time.
func list() (all []proc, complete bool) {
	l, _ := lists.Do(func() (listing, bool) { return readStatuses(), true })
	return l.all, l.complete
}

// listAll is list for looks at work, which have to know whether the list is complete.
func listAll() (all []proc, complete bool) {
	l, _ := looks.Join(together, func() (listing, bool) {
		l := readStatuses()
		return listing{l.all, l.complete && len(l.all) > 0}, true
	})
	return l.all, l.complete
}

// readAll reads all processes but this one, with the environments of those that it may have started. It
// returns nil if it was short of descriptors: a process that is not seen is not killed.
func readAll(d time.Duration) []proc {
	all, _, short := environs(procfs.NewPatience(d), pidsNow(), procfs.SelfStart(), always)
	if short {
		return nil
	}
	return all
}

// readStatuses reads all processes but this one, without environments, as far as there are descriptors.
func readStatuses() listing {
	all, complete := statuses(procfs.NewPatience(fullPatience), pidsNow(), always)
	return listing{all, complete}
}

// pidsNow lists all processes but this one. It returns nil if /proc cannot be read.
func pidsNow() []int {
	pids, _ := procfs.Ask(procfs.NewPatience(fullPatience), (*procfs.Reader).PIDs)
	return pids
}

// lastPID returns the process id that was given out last, or 0 if that is not known.
func lastPID() int {
	pid, _ := procfs.Ask(procfs.NewPatience(quickPatience), (*procfs.Reader).LastPID)
	return pid
}

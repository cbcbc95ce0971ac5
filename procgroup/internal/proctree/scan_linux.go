package proctree

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Concurrent looks share their results: if 200 commands end at the same time, they must not read all of /proc 200
// times.
var (
	quickScans, scans, recalls coalesce.Call[[]proc]
	tables, workTables         coalesce.Call[table]
)

// together bounds the age of a read in progress that the look of a Meter shares. The look reads the members themselves
// again, so what it shares lacks only the processes that have begun since the start of that read.
const together = 100 * time.Millisecond

// A table lists the processes of the system, except this one, without their environments.
type table struct {
	all      []proc
	complete bool
}

// scan lists all processes except this one, and the environments of those that are not older than this process. It
// reads them after the call. It returns nil if descriptors or memory ran out, because a kill must not rely on a list
// with gaps, and an empty list if /proc cannot be read in time. Other callers with the same patience share the list, so
// it must not be changed.
func scan(patience time.Duration) []proc {
	calls := &scans
	if patience == quickPatience {
		calls = &quickScans
	}
	all, _ := calls.Do(func() ([]proc, bool) {
		all, _, short := environs(procfs.NewPatience(patience), pidsNow(), procfs.SelfStart(), always)
		if short {
			return nil, true
		}
		return all, true
	})
	return all
}

// tableNow lists all processes except this one, without their environments. It reads them after the call. complete is
// false if a process was not read in time. Other callers share the list, so it must not be changed.
func tableNow() (all []proc, complete bool) {
	t, _ := tables.Do(func() (table, bool) { return readTable(), true })
	return t.all, t.complete
}

// workTable is tableNow for Meters: the read may have begun before the call, see together. complete is also false if
// the list is empty.
func workTable() (all []proc, complete bool) {
	t, _ := workTables.Join(together, func() (table, bool) {
		t := readTable()
		return table{t.all, t.complete && len(t.all) > 0}, true
	})
	return t.all, t.complete
}

// readTable reads all processes except this one, without their environments.
func readTable() table {
	all, complete := statuses(procfs.NewPatience(fullPatience), pidsNow(), always)
	return table{all, complete}
}

// pidsNow lists the ids of all processes except this one. It returns nil if /proc cannot be read in time.
func pidsNow() []int {
	pids, _ := procfs.Ask(procfs.NewPatience(fullPatience), (*procfs.Reader).PIDs)
	return pids
}

// lastPID returns the process id that the system assigned last, or 0 if it cannot be read in time.
func lastPID() int {
	pid, _ := procfs.Ask(procfs.NewPatience(quickPatience), (*procfs.Reader).LastPID)
	return pid
}

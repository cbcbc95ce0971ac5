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
	tables, workTables         coalesce.Call[table]
)

// together is how far apart looks at work may begin that share a table. Each look reads the members itself, so the
// table lacks only the processes that have begun since.
const together = 100 * time.Millisecond

// A table has the processes of the system without their environments, and says whether it has all of them.
type table struct {
	all      []proc
	complete bool
}

// scan lists the processes with their environments, as they are after the call. It returns nil if /proc cannot be
// read. Other callers share the list, so it must not be changed.
func scan() []proc {
	all, _ := scans.Do(func() ([]proc, bool) { return readAll(fullPatience), true })
	return all
}

// scanQuickly is like scan, with little patience for processes that are slow to show their environments.
func scanQuickly() []proc {
	all, _ := quickScans.Do(func() ([]proc, bool) { return readAll(quickPatience), true })
	return all
}

// tableNow returns the table of a look that began after the call. It is not complete if one of the processes was not
// shown in time.
func tableNow() (all []proc, complete bool) {
	t, _ := tables.Do(func() (table, bool) { return readTable(), true })
	return t.all, t.complete
}

// workTable returns the table for looks at work, which share it. complete is false if a process was not shown in
// time.
func workTable() (all []proc, complete bool) {
	t, _ := workTables.Join(together, func() (table, bool) {
		t := readTable()
		return table{t.all, t.complete && len(t.all) > 0}, true
	})
	return t.all, t.complete
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

// readTable reads all processes but this one, without environments, as far as there are descriptors.
func readTable() table {
	all, complete := statuses(procfs.NewPatience(fullPatience), pidsNow(), always)
	return table{all, complete}
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

package timeout

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Running returns the executions in progress, in the order of their IDs: the executions that began while there was a
// watcher (see [Watch]), from after Started to after Finished, and all executions that [AbandonedCount] counts. A
// command of package procgroup is in progress until its processes are gone.
func Running() (all []*Execution) {
	listed.Range(func(_, e any) bool {
		all = append(all, e.(*Execution))
		return true
	})
	slices.SortFunc(all, func(a, b *Execution) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// listed holds the executions that Running returns, by ID.
var listed sync.Map

// AbandonedCount returns the number of executions of this process that have left a goroutine behind: that of a function
// that was abandoned, or of a hook or log handler that had not returned when [Run] did. Once that function, hook or
// handler returns, the execution no longer counts. The goroutine keeps everything that it refers to in memory. A server
// whose count keeps growing should be restarted. [Running] lists these executions, even without a watcher.
func AbandonedCount() int { return int(abandonedNow.Load()) }

var abandonedNow atomic.Int64

// ID returns the number of the execution, which is unique in the process and never changes. It is 0 only for a nil
// Execution. The number is assigned when it is first used: at the start if there is a watcher.
func (e *Execution) ID() uint64 {
	if e == nil {
		return 0
	}
	return e.identity().id
}

// identity returns the entry of the execution, and creates it if there is none yet.
func (e *Execution) identity() *entry {
	if n := e.entry.Load(); n != nil {
		return n
	}
	e.entry.CompareAndSwap(nil, &entry{id: lastID.Add(1)})
	return e.entry.Load()
}

var lastID atomic.Uint64

// list adds the execution to the list that Running returns if there is a watcher and the execution has not ended. It
// is called after Started.
func (e *Execution) list() {
	if len(e.reports.watch) == 0 {
		return
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if !e.cell.Ended() {
		listed.Store(e.ID(), e)
	}
}

// settle counts and lists the execution while a function, a hook or a log handler that it has left behind has not
// returned. Otherwise it takes the execution off the list if the execution has ended. The cell is locked.
func (e *Execution) settle() {
	left := e.abandoned && !e.returned
	if r := e.reports; r != nil && r.late && r.busy {
		left = true
	}
	switch {
	case left && !e.leaves:
		abandonedNow.Add(1)
		listed.Store(e.ID(), e)
	case !left && e.leaves:
		abandonedNow.Add(-1)
	}
	e.leaves = left
	if n := e.entry.Load(); n != nil && !left && e.cell.Ended() {
		listed.Delete(n.id)
	}
}

package timeout

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Running lists the executions in progress, the oldest first: those that began while there was a
// watcher (see [Watch]), from after Started to after Finished, and all abandoned ones whose function
// has not returned yet. A command of package procgroup is listed until its processes are gone.
func Running() []*Execution {
	var found []*entry
	for i := range listed {
		s := &listed[i]
		s.mu.Lock()
		for n := s.first; n != nil; n = n.next {
			found = append(found, n)
		}
		s.mu.Unlock()
	}
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	all := make([]*Execution, len(found))
	for i, n := range found {
		all[i] = n.execution
	}
	return all
}

// AbandonedCount returns the number of executions of this process that have left a goroutine behind: of
// a function that was abandoned and has not returned since, or of a hook or log handler that [Run] has
// waited for in vain. The goroutine keeps everything that it refers to. A server whose count keeps growing
// should be restarted. [Running] lists these executions, even without a watcher.
func AbandonedCount() int { return int(abandonedNow.Load()) }

var abandonedNow atomic.Int64

// ID returns the number of the execution, which is unique in the process, never 0, and never
// changes. The executions that [Running] lists are numbered in the order in which they began.
func (e *Execution) ID() uint64 {
	if e == nil {
		return 0
	}
	return e.identity().id
}

// identity returns the entry of the execution, and makes it if there is none.
func (e *Execution) identity() *entry {
	if n := e.entry.Load(); n != nil {
		return n
	}
	e.entry.CompareAndSwap(nil, &entry{id: lastID.Add(1), execution: e})
	return e.entry.Load()
}

var lastID atomic.Uint64

// The list of executions is a few lists, each with a lock, which ids go round: one lock would
// be what all runs of a busy process wait for. Rejected: a map, which is twice the price
// and keeps the memory of the busiest moment.
const shards = 64

var listed [shards]struct {
	mu    sync.Mutex
	first *entry
	_     [48]byte // a cache line
}

// list lists the execution for Running, after Started.
func (e *Execution) list() {
	if e.reports.watch == nil {
		return
	}
	e.cell.Lock()
	defer e.cell.Unlock()
	if !e.cell.Ended() {
		e.identity().insert()
	}
}

// settle counts and lists the execution as long as it has left something behind: a function that has not
// returned, or a hook or log handler that has not. The cell is locked.
func (e *Execution) settle() {
	left := e.abandoned && !e.returned
	if r := e.reports; r != nil && r.late && r.busy {
		left = true
	}
	switch {
	case left && !e.leaves:
		abandonedNow.Add(1)
		e.identity().insert()
	case !left && e.leaves:
		abandonedNow.Add(-1)
	}
	e.leaves = left
	if n := e.entry.Load(); n != nil && !left && e.cell.Ended() {
		n.remove()
	}
}

// insert lists the execution, unless it is.
func (n *entry) insert() {
	s := &listed[n.id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.listed {
		return
	}
	if n.listed, n.next = true, s.first; n.next != nil {
		n.next.prev = n
	}
	s.first = n
}

// remove undoes insert. It leaves no way from this entry to another, which would keep that
// in memory.
func (n *entry) remove() {
	s := &listed[n.id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.listed {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		s.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	n.listed, n.prev, n.next = false, nil, nil
}

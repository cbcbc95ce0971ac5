package timeout

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// watchers is a set of hooks that is never changed, only replaced.
type watchers struct {
	hooks []Hooks
	who   []*byte // whose each of them is
}

var (
	watching    atomic.Pointer[watchers] // nil where nobody watches
	watchChange sync.Mutex
)

// Watch calls h for every execution of the process that begins from now on, until stop is called,
// and makes [Running] list those executions. It is for code that observes all tools of a program,
// such as metrics, traces, or a page that lists what is running. The [Hooks] may be empty if only
// the list is wanted. Several watchers may be registered at once; they are called in the order of
// registration.
//
// An execution reports to the watchers that were registered when it began, until it ends: each
// Started is followed by a Finished, even after stop. An execution that began earlier is neither
// reported nor listed, unless it is abandoned. Without a watcher, an execution pays one atomic load.
//
// Calling stop again does nothing. Watch and stop are safe for concurrent use.
func Watch(h Hooks) (stop func()) {
	me := new(byte)
	changeWatchers(func(w *watchers) {
		w.hooks, w.who = append(w.hooks, h), append(w.who, me)
	})
	return func() {
		changeWatchers(func(w *watchers) {
			if i := slices.Index(w.who, me); i >= 0 {
				w.hooks, w.who = slices.Delete(w.hooks, i, i+1), slices.Delete(w.who, i, i+1)
			}
		})
	}
}

func changeWatchers(change func(*watchers)) {
	watchChange.Lock()
	defer watchChange.Unlock()
	next := new(watchers)
	if old := watching.Load(); old != nil {
		next.hooks, next.who = slices.Clone(old.hooks), slices.Clone(old.who)
	}
	if change(next); len(next.who) == 0 {
		next = nil
	}
	watching.Store(next)
}

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
		all[i] = n.of
	}
	return all
}

// ByID returns the execution that [Running] lists with this id, or nil.
func ByID(id uint64) *Execution {
	s := &listed[id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.first; n != nil; n = n.next {
		if n.id == id {
			return n.of
		}
	}
	return nil
}

// The list of executions is a few lists, each with a lock, which ids go round: one lock would
// be what all runs of a busy process wait for. Rejected: a map, which is twice the price
// and keeps the memory of the busiest moment. ByID, for a person who has clicked, reads
// one of the lists.
const shards = 64

var listed [shards]struct {
	mu    sync.Mutex
	first *entry
	_     [48]byte // a cache line
}

// An entry is what few executions have: an id, a place in the list, and a panic of one within.
type entry struct {
	id uint64
	of *Execution

	// Under the lock of the list.
	on         bool
	prev, next *entry

	// Under the cell's lock.
	reported chan struct{} // closed when the abandonment has been reported

	passing atomic.Pointer[PanicError] // the last that an execution within this one has raised as it was
}

var lastID atomic.Uint64

// identity makes the entry where there is none.
func (e *Execution) identity() *entry {
	if n := e.entry.Load(); n != nil {
		return n
	}
	e.entry.CompareAndSwap(nil, &entry{id: lastID.Add(1), of: e})
	return e.entry.Load()
}

// insert lists the execution, unless it is.
func (n *entry) insert() {
	s := &listed[n.id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.on {
		return
	}
	if n.on, n.next = true, s.first; n.next != nil {
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
	if !n.on {
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
	n.on, n.prev, n.next = false, nil, nil
}

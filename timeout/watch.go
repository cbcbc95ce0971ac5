package timeout

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A watchers holds the hooks of all watchers of the process. It is immutable; a change replaces it.
type watchers struct {
	hooks  []Hooks
	owners []*byte // the identity of each hook's watcher
}

var (
	watching    atomic.Pointer[watchers] // nil if there are no watchers
	watchChange sync.Mutex
)

// Watch calls the hooks h for every execution of the process that begins from now on, until stop is called, and makes
// [Running] list those executions. It is for code that observes all tools of a program, such as metrics, traces, or a
// page that lists the running tools. The [Hooks] may be empty if only the list is wanted. Several watchers may be
// registered at the same time; their hooks are called in the order of registration.
//
// An execution reports to the watchers that were registered when it began, until it ends: each Started is followed
// by a Finished, even after stop. Executions that began earlier are not reported, and are listed only while
// [AbandonedCount] counts them. Without a watcher, an execution pays one atomic load.
//
// Calling stop again does nothing. Watch and stop are safe for concurrent use.
func Watch(h Hooks) (stop func()) {
	me := new(byte)
	changeWatchers(func(w *watchers) {
		w.hooks, w.owners = append(w.hooks, h), append(w.owners, me)
	})
	return func() {
		changeWatchers(func(w *watchers) {
			if i := slices.Index(w.owners, me); i >= 0 {
				w.hooks, w.owners = slices.Delete(w.hooks, i, i+1), slices.Delete(w.owners, i, i+1)
			}
		})
	}
}

func changeWatchers(change func(*watchers)) {
	watchChange.Lock()
	defer watchChange.Unlock()
	next := new(watchers)
	if old := watching.Load(); old != nil {
		next.hooks, next.owners = slices.Clone(old.hooks), slices.Clone(old.owners)
	}
	if change(next); len(next.owners) == 0 {
		next = nil
	}
	watching.Store(next)
}

package timeout

import (
	"slices"
	"sync"
	"sync/atomic"
)

var (
	watching    atomic.Pointer[[]*Hooks] // the hooks of all watchers of the process, replaced by each change; nil if there are none
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
	me := &h // the address tells this watcher from others
	changeWatchers(func(all []*Hooks) []*Hooks { return append(all, me) })
	return func() {
		changeWatchers(func(all []*Hooks) []*Hooks {
			return slices.DeleteFunc(all, func(h *Hooks) bool { return h == me })
		})
	}
}

// watched returns the hooks of all watchers. It must not be changed.
func watched() []*Hooks {
	if all := watching.Load(); all != nil {
		return *all
	}
	return nil
}

func changeWatchers(change func([]*Hooks) []*Hooks) {
	watchChange.Lock()
	defer watchChange.Unlock()
	if next := change(slices.Clone(watched())); len(next) > 0 {
		watching.Store(&next)
	} else {
		watching.Store(nil)
	}
}

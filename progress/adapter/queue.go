package adapter

import (
	"runtime/debug"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Queue runs the handlers of notifications on other goroutines than the one that reads the
// notifications, so that a slow handler delays neither an answer nor the renewal of a limit. The
// handlers of a session run one after the other, in the order of Add. The goroutines live only
// while there is something to run. A handler that panics or calls [runtime.Goexit] ends by that, and the
// next one runs; one that blocks keeps the later ones of its session waiting, and no others.
//
// The zero Queue is ready to use; set its fields before the first Add. It is safe for
// concurrent use.
type Queue struct {
	// Wait is how long Add waits for its handler to return, unless other handlers of the session
	// are waiting. Most handlers have then returned when the answer after them is handled. 0 means
	// that Add does not wait.
	Wait time.Duration
	// Max is how many handlers of a session may be ahead of one before Add waits for it without a
	// bound. 0 means any number. With a Max, a handler must not call Add for its own session: if
	// the session is full, the handler would wait for itself.
	Max int
	// Panicked, if it is not nil, is told of each panic of a handler, on the goroutine of the handlers
	// of that session.
	Panicked func(*timeout.PanicError)

	mu      sync.Mutex
	waiting map[any][]entry // a session is there while its goroutine runs
}

type entry struct {
	handle func()
	done   chan struct{} // nil where nobody waits
}

// Add appends a handler to the queue of a session. A session that cannot be compared is the same as
// no other. Where Add waits, see Wait and Max, handle is what it waits for.
func (q *Queue) Add(session any, handle func()) {
	key := identity.Key(session) // before the lock, since it may be one that a map would panic with
	e := entry{handle: handle}
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = make(map[any][]entry)
	}
	all, running := q.waiting[key]
	full := q.Max > 0 && len(all) >= q.Max
	if full || q.Wait > 0 && len(all) == 0 {
		e.done = make(chan struct{})
	}
	q.waiting[key] = append(all, e)
	if !running {
		go q.run(key)
	}
	q.mu.Unlock()
	switch {
	case full:
		<-e.done
	case e.done != nil:
		timer := time.NewTimer(q.Wait)
		defer timer.Stop()
		select {
		case <-e.done:
		case <-timer.C:
		}
	}
}

func (q *Queue) run(key any) {
	empty := false
	defer func() {
		if !empty { // a handler has called runtime.Goexit
			go q.run(key)
		}
	}()
	for {
		q.mu.Lock()
		all := q.waiting[key]
		if len(all) == 0 {
			delete(q.waiting, key)
			empty = true
			q.mu.Unlock()
			return
		}
		next := all[0]
		all[0] = entry{} // it holds what the handler does
		q.waiting[key] = all[1:]
		q.mu.Unlock()
		q.handle(next)
	}
}

func (q *Queue) handle(e entry) {
	if e.done != nil {
		defer close(e.done)
	}
	defer func() {
		if v := recover(); v != nil && q.Panicked != nil {
			q.Panicked(&timeout.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	e.handle()
}

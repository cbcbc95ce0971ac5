package adapter

import (
	"sync"
	"time"
)

// A Queue runs the handlers of notifications on other goroutines than the one that reads the
// notifications, so that a slow handler delays neither an answer nor the renewal of a limit. The
// handlers of a session run one after the other, in the order of Add. The goroutines live only
// while there is something to run; one that a handler ends with [runtime.Goexit] is replaced. A
// panic of a handler is not recovered.
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

	mu      sync.Mutex
	waiting map[any][]entry // a session is there while its goroutine runs
}

type entry struct {
	handle func()
	done   chan struct{} // nil where nobody waits
}

// Add appends a handler to the queue of the session. session is any comparable value.
func (q *Queue) Add(session any, handle func()) {
	e := entry{handle: handle}
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = make(map[any][]entry)
	}
	all, running := q.waiting[session]
	full := q.Max > 0 && len(all) >= q.Max
	if full || q.Wait > 0 && len(all) == 0 {
		e.done = make(chan struct{})
	}
	q.waiting[session] = append(all, e)
	if !running {
		go q.run(session)
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

func (q *Queue) run(session any) {
	empty := false
	defer func() {
		if !empty { // a handler has called runtime.Goexit, or panics
			go q.run(session)
		}
	}()
	for {
		q.mu.Lock()
		all := q.waiting[session]
		if len(all) == 0 {
			delete(q.waiting, session)
			empty = true
			q.mu.Unlock()
			return
		}
		next := all[0]
		all[0] = entry{} // it holds what the handler does
		q.waiting[session] = all[1:]
		q.mu.Unlock()
		next.run()
	}
}

func (e entry) run() {
	if e.done != nil {
		defer close(e.done)
	}
	e.handle()
}

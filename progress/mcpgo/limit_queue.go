package mcpgo

import (
	"sync"
	"time"
)

// handlerWait is how long the reader of a transport waits for a handler. Most are done long
// before, and then all is as mcp-go has it: the handlers of what came before an answer have
// returned when the call does.
const handlerWait = 20 * time.Millisecond

// maxWaiting is how many notifications wait for a slow handler before the reader does, as
// it would without us.
const maxWaiting = 1000

// A queue runs handlers one after the other. Its goroutine lives only while there is
// something to run.
type queue struct {
	mu      sync.Mutex
	running bool
	waiting []*entry
}

type entry struct {
	handle func()
	done   chan struct{}
}

// run is called by the readers of the transport, of which Streamable HTTP has several.
func (q *queue) run(handle func()) {
	e := &entry{handle, make(chan struct{})}
	q.mu.Lock()
	behind := len(q.waiting)
	q.waiting = append(q.waiting, e)
	busy := q.running
	if !q.running {
		q.running = true
		go q.work()
	}
	q.mu.Unlock()
	switch {
	case behind >= maxWaiting:
		<-e.done
	case busy && behind > 0: // somebody is waiting already, or has given up
	default:
		timer := time.NewTimer(handlerWait)
		defer timer.Stop()
		select {
		case <-e.done:
		case <-timer.C:
		}
	}
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		e := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		e.handle()
		close(e.done)
	}
}

package mcpsdk

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A queue runs the handlers of notifications, those of a session one after the other. Its
// goroutines live only while there is something to run. It is not bounded, as the SDK's
// own queue is not, whose place it takes: the answers come through the same pipe.
type queue struct {
	mu      sync.Mutex
	waiting map[mcp.Session][]func() // a session is there while its goroutine runs
}

func (q *queue) add(s mcp.Session, run func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = make(map[mcp.Session][]func())
	}
	all, running := q.waiting[s]
	q.waiting[s] = append(all, run)
	if !running {
		go q.run(s)
	}
}

func (q *queue) run(s mcp.Session) {
	done := false
	defer func() {
		if !done { // a handler has called runtime.Goexit
			go q.run(s)
		}
	}()
	for {
		q.mu.Lock()
		all := q.waiting[s]
		if len(all) == 0 {
			delete(q.waiting, s)
			done = true
			q.mu.Unlock()
			return
		}
		next := all[0]
		all[0] = nil // it has the params
		q.waiting[s] = all[1:]
		q.mu.Unlock()
		next()
	}
}

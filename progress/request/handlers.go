package request

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Handlers returns a function to which an adapter gives the handlers of notifications, each with the session of its
// notification. They run on other goroutines than the one that reads the notifications, so that a slow handler delays
// neither an answer nor the renewal of a limit. The handlers of a session run one after the other, in their order. If a
// handler panics, which the logger and the hooks of c get, or calls [runtime.Goexit], the next handler runs. A handler
// that blocks delays the later handlers of its session, and no others. A session value that cannot be compared is
// equal to no other session.
//
// add waits up to wait for its handler to return, unless others of the session are waiting: most have then returned
// when the answer after them is handled. If most handlers of the session are ahead, add waits for its own without a
// bound; a handler must not call it then. 0 means no wait, and any number.
func (c *Limiter) Handlers(wait time.Duration, most int) (add func(session any, handle func())) {
	return (&queue{limiter: c, wait: wait, most: most}).add
}

// panicked reports a panic of a handler of notifications, which belongs to no request. It runs an execution with the
// options of c that panics, so that their logger and hooks get the panic.
func (c *Limiter) panicked(p *timeout.PanicError) {
	opts := c.execution(timeout.Config{}, timeout.WithName("a handler of notifications"), timeout.WithRecover())
	_ = timeout.Run(context.Background(), func(context.Context) error {
		panic(fmt.Errorf("%w\n\n%s", p, p.Stack)) // the stack of this one tells nothing
	}, opts...)
}

// A queue runs the handlers of one client. Its goroutines live only while there is something to run.
type queue struct {
	limiter *Limiter
	wait    time.Duration
	most    int

	mu      sync.Mutex
	waiting map[any][]entry // a session is there while its goroutine runs
}

type entry struct {
	handle func()
	done   chan struct{} // nil where nobody waits
}

func (q *queue) add(session any, handle func()) {
	key := identity.Key(session) // before the lock, since it may be one that a map would panic with
	e := entry{handle: handle}
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = make(map[any][]entry)
	}
	all, running := q.waiting[key]
	full := q.most > 0 && len(all) >= q.most
	if full || q.wait > 0 && len(all) == 0 {
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
		timer := time.NewTimer(q.wait)
		defer timer.Stop()
		select {
		case <-e.done:
		case <-timer.C:
		}
	}
}

func (q *queue) run(key any) {
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
		all[0] = entry{} // the entry keeps the handler's memory alive
		q.waiting[key] = all[1:]
		q.mu.Unlock()
		q.handle(next)
	}
}

func (q *queue) handle(e entry) {
	if e.done != nil {
		defer close(e.done)
	}
	defer func() {
		if v := recover(); v != nil {
			q.limiter.panicked(&timeout.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	e.handle()
}

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

// Handlers returns a function add that runs handle, the handler of one notification of a session, on another goroutine,
// so that a slow handler delays neither an answer nor the renewal of a limit. The handlers of one session run one after
// the other, in the order of the calls of add; a handler that blocks delays no other session. After a handler that
// panics or calls [runtime.Goexit], the next one runs; the logger and the hooks of c receive the panic. If Go cannot
// compare the value of session, the notification counts as a session of its own.
//
// add waits up to wait for handle to return, unless other handlers of the session are queued before it, so that most
// handlers have returned when the caller reads the next message. If most handlers are queued, add waits for handle
// without a bound, and a handler that then calls add for its own session deadlocks. A wait of 0 or less means no
// wait, and a most of 0 or less means that add never waits without a bound.
func (c *Limiter) Handlers(wait time.Duration, most int) (add func(session any, handle func())) {
	return (&queue{limiter: c, wait: wait, most: most}).add
}

// panicked reports a panic of a handler of notifications, which belongs to no request. It runs an execution that panics
// with p, so that the logger and the hooks in the options of c receive p.
func (c *Limiter) panicked(p *timeout.PanicError) {
	opts := c.execution(timeout.Config{}, timeout.WithName("a handler of notifications"), timeout.WithRecover())
	_ = timeout.Run(context.Background(), func(context.Context) error {
		panic(fmt.Errorf("%w\n\n%s", p, p.Stack)) // with the stack of the handler
	}, opts...)
}

// A queue runs the handlers of one client. It has a goroutine for each session that has handlers to run.
type queue struct {
	limiter *Limiter
	wait    time.Duration
	most    int

	mu      sync.Mutex
	waiting map[any][]entry // by session; has a key, perhaps with an empty slice, while the session's goroutine runs
}

type entry struct {
	handle func()
	done   chan struct{} // closed when handle has returned or panicked; nil if add does not wait
}

func (q *queue) add(session any, handle func()) {
	key := identity.Key(session) // a session of a type that Go cannot compare would panic as a key of the map
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
		select {
		case <-e.done:
		case <-time.After(q.wait):
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
		all[0] = entry{} // lets the handler be garbage collected
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

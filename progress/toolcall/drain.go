package toolcall

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// ShutdownLimit bounds a [Drain.Shutdown] where nothing else does: the default grace of a tool,
// and time to write the answers. A Shutdown that has more time leaves the rest of it to the tools,
// before it aborts them.
const ShutdownLimit = 10 * time.Second

// A Drain ends the calls of a server in order, so that none is left without an answer. The
// zero Drain is ready to use, and safe for concurrent use.
//
// A call belongs to the drain that its context has as a value, by [Drain.Context] or
// [Drain.Handler], and joins it in [Do]. Over a connection such as stdio the adapters' Serve
// has a Drain of its own; over HTTP there is one for the server:
//
//	var drain toolcall.Drain
//	server := &http.Server{Handler: drain.Handler(mcpHandler)}
//	go server.Serve(listener)
//
//	<-ctx.Done()
//	limited, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
//	defer cancel()
//	drain.Shutdown(limited)  // the calls are answered, the streams ended
//	server.Shutdown(limited) // the connections are closed
type Drain struct {
	mu      sync.Mutex
	calls   map[*member]struct{}                  // that have joined and not left
	streams map[*context.CancelCauseFunc]struct{} // HTTP requests
	closing bool                                  // Shutdown has begun
	aborted bool                                  // and has aborted the calls
	drained bool                                  // and there was a moment with no call left
	ended   bool                                  // and it has returned
	idle    chan struct{}                         // made by Shutdown, closed with drained
}

// A member is a call that has joined. Its methods do nothing where it is nil.
type member struct {
	drain     *Drain
	cancel    context.CancelCauseFunc
	execution *timeout.Execution // nil before it begins; under the drain's lock
}

type drainKey struct{}

// Context returns a context that has d as a value. A server that is started with it, or a
// request that comes with it, has d as its drain.
func (d *Drain) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, d)
}

// Handler makes d the drain of all requests to h. What is still going on when [Drain.Shutdown]
// returns, such as a stream of notifications, ends then with its request's context, and so does
// what comes later: http.Server.Shutdown would wait for it.
//
// Put it outermost. It looks at no request.
func (d *Drain) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(d.Context(r.Context()))
		defer cancel(nil)
		d.mu.Lock()
		if d.streams == nil {
			d.streams = make(map[*context.CancelCauseFunc]struct{})
		}
		d.streams[&cancel] = struct{}{}
		if d.ended {
			cancel(ErrShutdown)
		}
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			delete(d.streams, &cancel)
			d.mu.Unlock()
		}()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Join returns a context for a call that [Drain.Shutdown] cancels with [ErrShutdown], and has
// cancelled already if it has begun. Call leave once, when the call has been answered: Shutdown
// waits for that. Without a drain in ctx, Join returns ctx and a leave that does nothing.
//
// [Do] does this for its call. It is for what makes calls wait before they get there, such as
// a limit on how many may run. A call may join more than once.
func Join(ctx context.Context) (_ context.Context, leave func()) {
	ctx, m := join(ctx)
	return ctx, m.leave
}

func join(ctx context.Context) (context.Context, *member) {
	d, _ := ctx.Value(drainKey{}).(*Drain)
	if d == nil {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	m := &member{drain: d, cancel: cancel}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = make(map[*member]struct{})
	}
	d.calls[m] = struct{}{}
	if d.closing {
		cancel(ErrShutdown)
	}
	return ctx, m
}

// begins is called on the goroutine of the call's execution, before the tool.
func (m *member) begins(ctx context.Context) {
	if m == nil {
		return
	}
	e := timeout.FromContext(ctx)
	m.drain.mu.Lock()
	m.execution = e
	late := m.drain.closing && !m.drain.aborted // joined before Shutdown, which has not seen it
	m.drain.mu.Unlock()
	if late {
		e.BeginClosing()
	}
}

func (m *member) leave() {
	if m == nil {
		return
	}
	m.cancel(nil)
	d := m.drain
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, m)
	d.settle()
}

// settle closes idle when there is nothing to wait for. The caller has the lock.
func (d *Drain) settle() {
	if d.closing && !d.drained && len(d.calls) == 0 {
		d.drained = true
		close(d.idle)
	}
}

// Shutdown ends the calls: those that come from now on are refused, those that run are
// aborted, both with [ErrShutdown], and it waits until all of them have been answered. An abort
// takes at most the grace of the tool's limits, and the answer as long as the client takes to
// read it; ctx bounds both. Then the error says how many calls have no answer, and errors.Is
// finds the cause of ctx in it.
//
// If ctx has a deadline that is more than [ShutdownLimit] away, the calls that run are closing first:
// a tool learns of it from [timeout.Closing], and can write what it has and return. What runs on is
// aborted when ShutdownLimit is left, or ctx ends. Without a deadline the calls are aborted at once.
//
// It does not close connections; do that next. A second call waits as the first does, and aborts the
// calls earlier if its own ctx leaves less time.
func (d *Drain) Shutdown(ctx context.Context) error {
	var wait time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline) - ShutdownLimit
	}
	running := d.refuse()
	if wait > 0 {
		for _, e := range running { // without the lock: hooks are called
			e.BeginClosing()
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-d.idle:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	d.abort()

	select {
	case <-d.idle:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	for cancel := range d.streams {
		(*cancel)(ErrShutdown)
	}
	if d.drained {
		return nil // also where ctx has ended at the same time
	}
	return fmt.Errorf("toolcall: calls without an answer: %d: %w", len(d.calls), context.Cause(ctx))
}

// refuse has calls refused that come from now on, and returns those that run, once.
func (d *Drain) refuse() (running []*timeout.Execution) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil
	}
	d.closing = true
	d.idle = make(chan struct{})
	for m := range d.calls {
		if m.execution != nil {
			running = append(running, m.execution)
		}
	}
	d.settle()
	return running
}

func (d *Drain) abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aborted = true
	for m := range d.calls {
		m.cancel(ErrShutdown) // AfterFuncs run on goroutines of their own, so none can need the lock
	}
}

package toolcall

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ShutdownLimit is the default bound of a shutdown: the default grace of a tool, and time to write the
// answers. A [Drain.Shutdown] that has more time leaves the additional time to the tools before it
// aborts them.
const ShutdownLimit = 10 * time.Second

// A Drain ends the calls of a server in order, so that each of them is answered. The zero Drain is
// ready to use, and safe for concurrent use.
//
// A call belongs to the drain in its context, which [Drain.Context] or [Drain.Handler] has put there,
// and joins it in [Do]. The function Serve of each adapter, for a connection such as stdio, makes a
// Drain itself. An HTTP server needs one for all its requests:
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
	calls   map[*member]struct{}                  // the calls that have joined and not left
	streams map[*context.CancelCauseFunc]struct{} // HTTP requests
	closing bool                                  // Shutdown has begun
	drained bool                                  // there was a moment with no call left since Shutdown has begun
	ended   bool                                  // Shutdown has returned
	idle    chan struct{}                         // made by Shutdown, closed with drained
}

// A member is a call that has joined a drain. The methods of a nil *member do nothing.
type member struct {
	drain     *Drain
	cancel    context.CancelCauseFunc
	execution *timeout.Execution // nil before it begins; under the drain's lock
}

type drainKey struct{}

// Context returns a context with d as the drain. Start a server or handle a request with it.
func (d *Drain) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, d)
}

// Handler makes d the drain of all requests to h. When [Drain.Shutdown] returns, the contexts of
// requests that are still in progress, such as a stream of notifications, are cancelled, and so are
// those of later requests: http.Server.Shutdown would wait for them.
//
// Put the returned handler outermost. It does not look at the requests.
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

// Join returns a context for a call that [Drain.Shutdown] cancels with [ErrShutdown]; if the shutdown
// has begun, the context is already cancelled. Call leave once, when the call has been answered:
// Shutdown waits for that. If ctx has no drain, Join returns ctx and a leave that does nothing.
//
// [Do] joins by itself. Join is for code that holds calls back before Do, such as a limit on how many
// may run. A call may join more than once.
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

// begins makes the drain know the execution of the call. It is called on the goroutine of the execution, before the
// tool.
func (m *member) begins(ctx context.Context) {
	if m == nil {
		return
	}
	e := timeout.FromContext(ctx)
	m.drain.mu.Lock()
	m.execution = e
	late := m.drain.closing // joined before Shutdown, which has not seen it
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
	d.checkDrained()
}

// checkDrained closes idle when there is nothing left to wait for. The caller has the lock.
func (d *Drain) checkDrained() {
	if d.closing && !d.drained && len(d.calls) == 0 {
		d.drained = true
		close(d.idle)
	}
}

// Shutdown ends the calls: it refuses those that begin from now on and aborts those in progress, both
// with [ErrShutdown], and waits until all of them have been answered. An abort takes at most the grace
// of the tool's limits, and the answer as long as the client takes to read it; ctx bounds both. If ctx
// ends first, the error says how many calls have no answer, and errors.Is finds the cause of ctx in
// it.
//
// If ctx has a deadline more than [ShutdownLimit] away, the calls in progress are closing first: a
// tool learns of it from [timeout.Closing], and can write what it has and return. Calls that are still
// running when ShutdownLimit is left, or when ctx ends, are aborted. Without a deadline the calls are
// aborted at once.
//
// Shutdown does not close connections; do that next. A second call of Shutdown waits as the first
// does, and aborts the calls earlier if its ctx leaves less time.
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
		return nil // even if ctx has ended at the same time
	}
	return texts.Wrap(fmt.Sprint("toolcall: calls without an answer: ", len(d.calls)), context.Cause(ctx))
}

// refuse makes the drain refuse calls that come from now on. The first call of refuse returns the calls that run.
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
	d.checkDrained()
	return running
}

func (d *Drain) abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for m := range d.calls {
		m.cancel(ErrShutdown) // AfterFuncs run on goroutines of their own, so none can need the lock
	}
}

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

// ShutdownLimit is the usual time for a [Drain.Shutdown]: the default grace of a tool, and time to write the answers.
// If Shutdown has more time, it waits for the tools during the additional time before it aborts them.
const ShutdownLimit = 10 * time.Second

// A Drain ends the calls of a server when the server shuts down, so that each of them is answered. The zero
// Drain is ready to use, and safe for concurrent use.
//
// A call belongs to the Drain in its context, which [Drain.Context] or [Drain.Handler] has set, and joins the Drain in
// [Do]. The function Serve of each adapter, for a connection such as stdio, creates a Drain itself. An HTTP server
// needs one Drain for all its requests:
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
	calls   map[*member]struct{}                  // calls that have joined and not left
	streams map[*context.CancelCauseFunc]struct{} // HTTP requests in progress, by their cancel function
	closing bool                                  // Shutdown has begun
	drained bool                                  // calls was empty at some moment after closing was set; never reset
	ended   bool                                  // Shutdown returns or has returned
	idle    chan struct{}                         // created when closing is set; closed when drained is set
}

// A member is a call that has joined a drain. The methods of a nil *member do nothing.
type member struct {
	drain     *Drain
	cancel    context.CancelCauseFunc
	execution *timeout.Execution // nil before it begins; guarded by drain.mu
}

type drainKey struct{}

// Context returns a context with d as the Drain of its calls, with which to run a server or handle a request.
func (d *Drain) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, d)
}

// Handler returns a handler that calls h with d as the Drain of all requests. When [Drain.Shutdown] returns, it cancels
// the contexts of requests that are still in progress, such as a stream of notifications, because http.Server.Shutdown
// would wait for them. The contexts of later requests are cancelled from the start.
//
// Make the returned handler the outermost one.
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

// Join adds a call to the Drain of ctx, and returns a context for the call that [Drain.Shutdown] cancels with
// [ErrShutdown]. If a shutdown has begun, the context is already cancelled. The caller must call leave when the call
// has been answered: Shutdown waits for that, and leave cancels the context. If ctx has no Drain, Join returns ctx and
// a leave that does nothing.
//
// [Do] calls Join itself. Join is for code that delays calls before Do, such as a limit on how many calls may run. A
// call may join more than once.
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

// begins records the execution of the call, so that refuse can return it. It runs on the goroutine of the execution,
// before the tool.
func (m *member) begins(ctx context.Context) {
	if m == nil {
		return
	}
	e := timeout.FromContext(ctx)
	m.drain.mu.Lock()
	m.execution = e
	late := m.drain.closing // Shutdown has begun after the call joined, and has not found the execution
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

// checkDrained sets drained and closes idle if a shutdown has begun and no call is left. The caller holds d.mu.
func (d *Drain) checkDrained() {
	if d.closing && !d.drained && len(d.calls) == 0 {
		d.drained = true
		close(d.idle)
	}
}

// Shutdown ends the calls: it refuses calls that begin from now on and aborts calls in progress, both with
// [ErrShutdown], and waits until all of them have been answered. An abort takes at most the grace of the tool's limits
// and 200 ms for notifications, and an answer as long as the client takes to read it; ctx bounds both. If ctx ends
// first, the error says how many calls have no answer, and errors.Is finds the cause of ctx in the error.
//
// If ctx has a deadline more than [ShutdownLimit] away, the calls in progress first begin to close: the channel of
// [timeout.Closing] is closed, so that a tool can save its work and return. Calls that are still running when
// ShutdownLimit is left, or when ctx ends, are aborted. Without a deadline, Shutdown aborts the calls at once.
//
// Shutdown does not close connections; close them afterwards. A second call of Shutdown waits as the first call does,
// and aborts the calls earlier if its ctx leaves less time.
func (d *Drain) Shutdown(ctx context.Context) error {
	var wait time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline) - ShutdownLimit
	}
	running := d.refuse()
	if wait > 0 {
		for _, e := range running { // without the lock, because BeginClosing calls hooks
			e.BeginClosing()
		}
		select {
		case <-d.idle:
		case <-time.After(wait):
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

// refuse sets closing, so that calls that join from now on are refused. The first call of refuse returns the executions
// in progress, without those of calls that have joined and not begun; later calls return nil.
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
		m.cancel(ErrShutdown) // cannot deadlock: context.AfterFunc runs its functions on other goroutines
	}
}

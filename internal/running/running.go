// Package running keeps a register of the tool calls of a process that run on after their first answer,
// which gave the client a handle instead of a result. It limits their number, finds them by id, and cancels them.
package running

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// A Call is a tool call in a Calls.
type Call struct {
	Owner  string                  // the session to which the call belongs
	Cancel context.CancelCauseFunc // cancels the call; called with the lock of Calls held
	// Of is a value of the package that uses Calls.
	Of any

	id      string              // "" before Handed
	permits *semaphore.Weighted // the limit from which the call has a permit
}

// A Core holds the settings of a program for such calls, with defaults filled in, and the calls.
type Core[Store any] struct {
	Store           Store
	Poll, Retention time.Duration
	Running         *Calls
}

// maxErrands is the largest number of errands at a time; see BeginErrand.
const maxErrands = 1000

// Calls holds those calls of a process that run on after their first answer. Make one with New. It is safe for
// concurrent use.
type Calls struct {
	permits       *semaphore.Weighted
	errandPermits *semaphore.Weighted
	ctx           context.Context
	giveUp        context.CancelFunc

	mu      sync.Mutex
	byID    map[string]*Call   // the calls that have a handle, by id
	handing map[*Call]struct{} // the calls whose handle is being stored
	closed  bool               // Shutdown was called
	idle    chan struct{}      // made by Shutdown, closed when no call is left
	past    pastIDs
}

// New returns an empty Calls that admits up to most tool calls at a time, none if most is 0 or less, and beside them up
// to maxErrands errands.
func New(most int64) *Calls {
	c := &Calls{permits: semaphore.NewWeighted(most), errandPermits: semaphore.NewWeighted(maxErrands), byID: make(map[string]*Call), handing: make(map[*Call]struct{})}
	c.ctx, c.giveUp = context.WithCancel(context.Background())
	return c
}

// Context returns a context that ends when a Shutdown returns although calls are left.
func (c *Calls) Context() context.Context { return c.ctx }

// Begin adds a call before its handle is stored, so that a concurrent Shutdown waits for the call, and a
// concurrent Abort cancels it. Begin reports whether it has added the call: it does not if there are too
// many calls, or after Shutdown. If it has, the caller must call End, and may call Handed before that.
func (c *Calls) Begin(call *Call) bool { return c.begin(call, c.permits) }

// BeginErrand is Begin for work that is not a tool call. Such work has a limit of its own, maxErrands.
func (c *Calls) BeginErrand(call *Call) bool { return c.begin(call, c.errandPermits) }

func (c *Calls) begin(call *Call, permits *semaphore.Weighted) bool {
	if !permits.TryAcquire(1) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		permits.Release(1)
		return false
	}
	call.permits = permits
	c.handing[call] = struct{}{}
	return true
}

// Handed records the id of a call whose handle has been stored, so that Find finds the call. If remembered
// is true, Why recognises the id even after the call has ended. Handed returns false if Shutdown was called:
// the caller must then cancel the call, because Shutdown cancels only calls that had an id before.
func (c *Calls) Handed(call *Call, id string, remembered bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handing, call)
	call.id = id
	c.byID[id] = call
	if remembered {
		c.past.add(id, call.Owner)
	}
	return !c.closed
}

// End removes a call and releases its place.
func (c *Calls) End(call *Call) {
	call.permits.Release(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handing, call)
	if c.byID[call.id] == call {
		delete(c.byID, call.id)
	}
	c.checkIdle()
}

// Find returns the owner's call with an id, or nil if there is none.
func (c *Calls) Find(owner, id string) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.byID[id]; call != nil && call.Owner == owner {
		return call
	}
	return nil
}

// Abort cancels all calls of an owner with a cause. It does not wait for their ends.
func (c *Calls) Abort(owner string, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.byID {
		if call.Owner == owner {
			call.Cancel(cause)
		}
	}
	for call := range c.handing {
		if call.Owner == owner {
			call.Cancel(cause)
		}
	}
}

// Shutdown makes Begin refuse new calls, cancels the calls that have an id, and waits until no call is
// left or ctx ends. It returns the number of calls that are left.
func (c *Calls) Shutdown(ctx context.Context, cause error) (open int) {
	c.mu.Lock()
	c.closed = true
	if c.idle == nil {
		c.idle = make(chan struct{})
		c.checkIdle()
	}
	idle := c.idle
	for _, call := range c.byID {
		call.Cancel(cause)
	}
	c.mu.Unlock()

	select {
	case <-idle:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	open = len(c.byID) + len(c.handing)
	if open > 0 { // it may be 0 even if ctx has ended
		c.giveUp()
	}
	return open
}

// checkIdle closes idle if Shutdown was called and no call is left. The caller holds the lock.
func (c *Calls) checkIdle() {
	if c.idle == nil || len(c.byID)+len(c.handing) > 0 {
		return
	}
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// Why returns a sentence that says why an owner has no call with an id.
func (c *Calls) Why(owner, id string) string {
	c.mu.Lock()
	of, known := c.past.owners[id]
	c.mu.Unlock()
	id = texts.Short(id, 64)
	switch {
	case !known:
		return fmt.Sprintf("The id %q is unknown: no call has it.", id)
	case of != owner:
		return fmt.Sprintf("The call with the id %q belongs to another session.", id)
	}
	return fmt.Sprintf("The result of the call with the id %q has expired.", id)
}

// maxPast is the number of ids that Why can recognise after their calls have ended.
const maxPast = 4096

// pastIDs holds the newest maxPast ids that Handed was to remember.
type pastIDs struct {
	owners map[string]string // by id
	order  []string          // a ring, the oldest at next
	next   int
}

func (p *pastIDs) add(id, owner string) {
	if p.owners == nil {
		p.owners = make(map[string]string)
	}
	p.owners[id] = owner
	if len(p.order) < maxPast {
		p.order = append(p.order, id)
		return
	}
	delete(p.owners, p.order[p.next])
	p.order[p.next] = id
	p.next = (p.next + 1) % maxPast
}

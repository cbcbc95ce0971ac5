// Package running knows the tool calls of a process that have outlived their answer, or are about to:
// it bounds how many there are, finds one by its id, and aborts them.
package running

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// A Call is a tool call that has outlived its answer, or is about to.
type Call struct {
	Owner  string
	Cancel context.CancelCauseFunc
	// Of is the caller's own value for the call.
	Of any

	id      string
	permits *semaphore.Weighted
}

// A Core holds the settings of a program for its calls, with the defaults in place, and the calls that run.
type Core[Store any] struct {
	Store           Store
	Poll, Retention time.Duration
	Running         *Calls
}

// maxErrands is how many errands there may be at a time.
const maxErrands = 1000

// Calls holds the calls of a process. It is safe for concurrent use.
type Calls struct {
	permits       *semaphore.Weighted
	errandPermits *semaphore.Weighted
	ctx           context.Context
	giveUp        context.CancelFunc

	mu      sync.Mutex
	byID    map[string]*Call   // those that have a handle
	handing map[*Call]struct{} // those whose handle is being stored
	closed  bool
	idle    chan struct{} // made by Shutdown, closed when there are none
	past    pastIDs
}

// New returns a Calls that has no calls, and that admits most calls at a time.
func New(most int64) *Calls {
	c := &Calls{permits: semaphore.NewWeighted(most), errandPermits: semaphore.NewWeighted(maxErrands), byID: make(map[string]*Call), handing: make(map[*Call]struct{})}
	c.ctx, c.giveUp = context.WithCancel(context.Background())
	return c
}

// Context returns a context that ends when a Shutdown has given up.
func (c *Calls) Context() context.Context { return c.ctx }

// Begin adds a call before its handle is stored: a Shutdown that comes meanwhile waits for the call, and an
// Abort finds it. Begin reports false if there is no room, or a Shutdown has begun. If it reports true, the
// caller must call End, and may call Handed before.
func (c *Calls) Begin(call *Call) bool { return c.begin(call, c.permits) }

// BeginErrand is Begin for work that is not a tool call. It does not count towards the limit on tool calls.
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

// Handed makes a call known by its id. If remembered is set, Why knows the id for longer than the call
// lives. Handed reports false if a Shutdown has begun.
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

// End removes a call.
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

// Find returns the call that an owner has under an id, or nil.
func (c *Calls) Find(owner, id string) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.byID[id]; call != nil && call.Owner == owner {
		return call
	}
	return nil
}

// Abort cancels the calls of an owner.
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

// Shutdown refuses new calls, cancels those that have a handle, and waits until no call is left or ctx ends.
// It returns the number of calls that are left.
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
	if open > 0 { // not where ctx has ended together with the last
		c.giveUp()
	}
	return open
}

// checkIdle closes idle when there are no calls. The caller has the lock.
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

// Why says why an owner has no call with an id.
func (c *Calls) Why(owner, id string) string {
	c.mu.Lock()
	of, known := c.past.owners[id]
	c.mu.Unlock()
	id = Shorten(id)
	switch {
	case !known:
		return fmt.Sprintf("The id %q is unknown: no call has it.", id)
	case of != owner:
		return fmt.Sprintf("The call with the id %q belongs to another session.", id)
	}
	return fmt.Sprintf("The result of the call with the id %q has expired.", id)
}

// Shorten cuts a stranger's text for a message.
func Shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// maxPast is how many ids are remembered.
const maxPast = 4096

// pastIDs has the newest ids.
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

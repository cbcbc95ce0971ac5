package pulse

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The states of a relay.
const (
	quiet uint32 = iota // the next beat is delivered at once
	open                // a delivery began less than an interval ago, or still runs
	dirty               // like open, and beats have come since the delivery began
)

// A Relay delivers the beats of a cell at most once per interval. A beat costs it an atomic load, or a compare-and-swap
// if the state changes, because the detail is read at the delivery and not at the beat.
//
// No goroutine waits: one is started for each delivery, and a timer marks the end of the interval. At most one delivery
// runs at a time, and a delivery that never returns blocks only the deliveries after it.
//
// When its context is cancelled, a relay is halted: it no longer delivers beats, but once more a
// detail that has not been delivered. A function that is being stopped may still report how far it
// got. Therefore only Stop or the end of the cell stops the relay. Both deliver such a detail, too.
type Relay struct {
	state   atomic.Uint32
	due     atomic.Bool // a delivery has been decided on and has not begun; run and forget clear it
	cell    *Cell
	every   time.Duration
	deliver func(ctx context.Context, detail any)
	client  bool            // for a client that waits for the answer, which learns of holds and of the end in another way
	ctx     context.Context // passed to deliver; ends after Stop, with the last delivery or after lastWait
	cancel  context.CancelFunc

	mu        sync.Mutex // guards the fields below, and the beginning of a delivery; it is locked before the cell
	timer     Timer
	unhook    func() bool   // removes the function that halts the relay when the caller's context ends
	running   chan struct{} // closed when the delivery in progress ends; nil if there is none
	delivered *any          // the newest detail whose delivery has begun, or the detail from before the relay
	halted    bool          // the caller's context has ended, or stopped
	stopped   bool          // Stop was called
	until     time.Time     // if stopped, the end of lastWait
	bound     *time.Timer   // calls cancel after lastWait
}

// lastWait is the longest time that Wait waits for deliveries at the end of a relay. It is less than
// the default grace, so that a function that waits for them after a limit is not abandoned.
const lastWait = 2 * time.Second

// Mute returns ctx without its cell. It is for code that must not count as a sign of life: a sink that
// beats, or writes to a writer that beats, would keep a stuck tool alive for ever.
func Mute(ctx context.Context) context.Context { return mute{ctx} }

type mute struct{ context.Context }

func (m mute) Value(k any) any {
	if k == (key{}) {
		return nil
	}
	return m.Context.Value(k)
}

// Relay starts a relay that calls deliver at most once per interval of length every, until the cell
// ends, ctx ends or Stop is called. An interval of 0 means no pause between deliveries. deliver gets
// the newest detail, or nil if there is none.
func (c *Cell) Relay(ctx context.Context, every time.Duration, deliver func(ctx context.Context, detail any)) *Relay {
	return c.relay(&Relay{cell: c, every: every, deliver: deliver}, ctx)
}

func (c *Cell) relay(r *Relay, ctx context.Context) *Relay {
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(Mute(ctx)))
	r.delivered = c.detail.Load()
	unhook := context.AfterFunc(ctx, r.halt) // r.halt may run before r.unhook is set
	r.mu.Lock()
	r.unhook = unhook
	r.mu.Unlock()
	c.mu.Lock()
	ended := c.state.Load() == closed
	if !ended {
		all := append(slices.Clone(c.active()), r)
		c.relays.Store(&all)
	}
	c.mu.Unlock()
	if ended {
		r.Stop()
	}
	return r
}

// active returns the relays of the cell.
func (c *Cell) active() []*Relay {
	if relays := c.relays.Load(); relays != nil {
		return *relays
	}
	return nil
}

// notify makes the relays deliver a beat or a new detail.
func (c *Cell) notify() {
	for _, r := range c.active() {
		r.notify()
	}
}

// notifyHold makes the relays, except those to a waiting client, deliver because a hold has begun or ended.
func (c *Cell) notifyHold() {
	for _, r := range c.active() {
		if !r.client {
			r.notify()
		}
	}
}

// notify starts a delivery or, within an interval, marks that another has to follow.
func (r *Relay) notify() {
	for {
		switch r.state.Load() {
		case dirty:
			return
		case open:
			if r.state.CompareAndSwap(open, dirty) {
				return
			}
		case quiet:
			if r.state.CompareAndSwap(quiet, open) {
				r.due.Store(true)
				go r.run()
				return
			}
		}
	}
}

// run makes the delivery that is due, and sets the timer for the rest of the interval. If forget has dropped the
// delivery, run only sets the timer. If the relay is halted, run does nothing.
func (r *Relay) run() {
	r.mu.Lock()
	if r.halted {
		r.mu.Unlock()
		return
	}
	if !r.due.Swap(false) {
		r.timer = AfterFunc(r.cell.clock, r.every, r.elapsed)
		r.mu.Unlock()
		return
	}
	detail := r.cell.detail.Load()
	r.begin(detail)
	r.mu.Unlock()
	r.pass(detail)
}

// begin records that the delivery of a detail begins. The relay is locked.
func (r *Relay) begin(detail *any) {
	r.running, r.delivered = make(chan struct{}), detail
}

// pass calls deliver, and then sets the timer or, if the relay is halted, concludes. If it starts so late that Wait has
// returned, it delivers nothing.
func (r *Relay) pass(detail *any) {
	r.mu.Lock()
	late := r.over()
	if late {
		close(r.running)
		r.running = nil
	}
	r.mu.Unlock()
	if late {
		return
	}
	start := r.cell.Now()
	defer func() {
		_ = recover() // a delivery that panics must not end the process
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.running)
		r.running = nil
		if r.halted {
			r.conclude()
		} else {
			r.timer = AfterFunc(r.cell.clock, r.every-(r.cell.Now()-start), r.elapsed)
		}
	}()
	r.deliver(r.ctx, valueOf(detail))
}

// elapsed ends an interval. It makes the next delivery if there were beats in the interval, or during a hold.
func (r *Relay) elapsed() {
	r.mu.Lock()
	held := !r.client && r.every > 0 && r.cell.held.Load() > 0
	again := held || !r.state.CompareAndSwap(open, quiet)
	if again {
		r.state.Store(open) // before the delivery reads, so that a beat during it is new
		r.due.Store(true)
	}
	r.mu.Unlock()
	if again {
		r.run()
	}
}

// forget drops a delivery that has been decided on and has not begun.
func (r *Relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.Store(false)
	r.state.CompareAndSwap(dirty, open)
}

// halt ends the deliveries at intervals, and delivers the newest detail if it has not been delivered. A relay to a
// waiting client is stopped instead.
func (r *Relay) halt() {
	if r.client {
		r.Stop()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quieten()
	r.conclude()
}

// quieten ends the deliveries at intervals. The relay is locked.
func (r *Relay) quieten() {
	r.halted = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// conclude starts the delivery of the newest detail, unless it has been delivered. If nothing is left
// to deliver and the relay is stopped, conclude ends the context. The relay is locked, and halted.
func (r *Relay) conclude() {
	if r.running != nil {
		return // the end of the running delivery calls conclude again
	}
	if detail := r.pending(); detail != nil {
		r.begin(detail)
		go r.pass(detail)
		return
	}
	if r.stopped {
		r.cancel()
		if r.bound != nil {
			r.bound.Stop()
		}
	}
}

// over reports whether nothing may be delivered any more. It reads the clock, because the timer that ends the context
// may fire late. The relay is locked.
func (r *Relay) over() bool {
	return r.ctx.Err() != nil || r.stopped && !time.Now().Before(r.until)
}

// pending returns the newest detail if it has not been delivered and still can be, or nil. It skips the details of
// interludes, which end with the relay. The relay is locked.
func (r *Relay) pending() *any {
	if r.client || r.over() {
		return nil
	}
	if detail := r.cell.lasting(); detail != r.delivered {
		return detail
	}
	return nil
}

// Stop ends the relay. The delivery in progress, and one more of a detail that has not been delivered,
// have lastWait to finish. Stop does not wait for them; Wait does. Stop may be called more than once.
func (r *Relay) Stop() {
	r.mu.Lock()
	r.quieten()
	first := !r.stopped
	if r.stopped = true; first {
		r.until = time.Now().Add(lastWait)
	}
	unhook := r.unhook
	r.conclude()
	if first && r.ctx.Err() == nil {
		r.bound = time.AfterFunc(lastWait, r.cancel)
	}
	r.mu.Unlock()
	if unhook != nil {
		unhook()
	}

	c := r.cell
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.active(), r); i >= 0 {
		all := slices.Delete(slices.Clone(c.active()), i, i+1)
		c.relays.Store(&all)
	}
}

// Wait waits until the last delivery has ended, but not longer than lastWait after Stop. Call it after Stop. No
// delivery begins after it has returned.
func (r *Relay) Wait() { <-r.ctx.Done() }

// Running returns a channel that is closed when the delivery in progress has ended, or nil if there is none.
func (r *Relay) Running() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

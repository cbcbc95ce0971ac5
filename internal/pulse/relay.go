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
	open                // a delivery was made less than an interval ago
	dirty               // like open, and beats have come since
)

// A Relay delivers the beats of a cell at most once per interval. A beat costs it an atomic load,
// or a compare-and-swap if the state changes: the detail is read when it is delivered, not when it
// is beaten.
//
// No goroutine waits: one is started for each delivery, and a timer marks the end of the interval.
// So at most one delivery runs at a time, and a delivery that never returns blocks only the
// deliveries after it.
//
// A relay is halted when its context is cancelled: from then on it delivers only a detail that has
// not been delivered, at once. A function that is stopped may still say how far it has come, so
// only Stop and the end of the cell end the relay, which is the last chance for such a detail.
type Relay struct {
	state   atomic.Uint32
	due     atomic.Bool // a delivery has been decided on and has not begun
	cell    *Cell
	every   time.Duration
	deliver func(ctx context.Context, detail any)
	client  bool            // delivers to the client that waits for the answer
	ctx     context.Context // of the deliveries; it ends when the last one has, or at the bound
	cancel  context.CancelFunc

	mu        sync.Mutex // guards the fields below, and the decision to deliver; it is locked before the cell
	timer     Timer
	unhook    func() bool
	running   chan struct{} // closed when the delivery in progress ends; nil if there is none
	delivered *any          // the newest detail that was, or the one from before the relay
	halted    bool
	stopped   bool
	until     time.Time   // when a stopped relay is waited for no longer
	bound     *time.Timer // ends the context of what is delivered at the end
}

// lastWait bounds the deliveries at the end of a relay. It is less than the default grace: a
// function that waits for them after a limit is not abandoned for that.
const lastWait = 2 * time.Second

// Mute returns ctx without its cell, for code that must not count as a sign of life: a sink that
// beats, or writes to something that beats, would keep a stuck tool alive for ever.
func Mute(ctx context.Context) context.Context { return mute{ctx} }

type mute struct{ context.Context }

func (m mute) Value(k any) any {
	if k == (key{}) {
		return nil
	}
	return m.Context.Value(k)
}

// Relay starts a relay that ends with the cell, with ctx or when it is stopped. An interval of 0
// means no pause between deliveries. A delivery gets the newest detail, or nil if there is none.
func (c *Cell) Relay(ctx context.Context, every time.Duration, deliver func(ctx context.Context, detail any)) *Relay {
	return c.relay(&Relay{cell: c, every: every, deliver: deliver}, ctx)
}

func (c *Cell) relay(r *Relay, ctx context.Context) *Relay {
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(Mute(ctx)))
	r.delivered = c.detail.Load()
	unhook := context.AfterFunc(ctx, r.halt) // halt may be called at once
	r.mu.Lock()
	r.unhook = unhook
	r.mu.Unlock()
	c.mu.Lock()
	ended := c.state.Load() == closed
	if !ended {
		all := []*Relay{r}
		if old := c.relays.Load(); old != nil {
			all = append(slices.Clone(*old), r)
		}
		c.relays.Store(&all)
	}
	c.mu.Unlock()
	if ended {
		r.Stop()
	}
	return r
}

// notify tells the relays that the cell has something new.
func (c *Cell) notify() {
	relays := c.relays.Load()
	if relays == nil {
		return
	}
	for _, r := range *relays {
		r.notify()
	}
}

// notifyHold tells the relays that a hold has begun or ended.
func (c *Cell) notifyHold() {
	relays := c.relays.Load()
	if relays == nil {
		return
	}
	for _, r := range *relays {
		if r.speaks() {
			r.notify()
		}
	}
}

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

// run makes the delivery that is due, and sets the timer for the rest of the interval.
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

// begin records that the detail is being delivered. The relay is locked.
func (r *Relay) begin(detail *any) {
	r.running, r.delivered = make(chan struct{}), detail
}

// pass makes a delivery that has begun.
func (r *Relay) pass(detail *any) {
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
	var d any
	if detail != nil {
		d = *detail
	}
	r.deliver(r.ctx, d)
}

// passLast is pass on a goroutine that may begin late: what Wait no longer waits for is not delivered.
func (r *Relay) passLast(detail *any) {
	r.mu.Lock()
	late := r.over()
	if late {
		close(r.running)
		r.running = nil
	}
	r.mu.Unlock()
	if !late {
		r.pass(detail)
	}
}

func (r *Relay) elapsed() {
	r.mu.Lock()
	held := r.speaks() && r.every > 0 && r.cell.held.Load() > 0
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

// speaks reports whether the relay delivers during a hold, and its last detail at its end. A client
// that waits for the answer hears of both in another way.
func (r *Relay) speaks() bool { return !r.client }

// forget drops a pending delivery.
func (r *Relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.Store(false)
	r.state.CompareAndSwap(dirty, open)
}

// halt ends the deliveries at intervals, and delivers the newest detail.
func (r *Relay) halt() {
	if !r.speaks() {
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

// conclude delivers the newest detail unless that has been done, and ends the context of a relay
// that is stopped and has nothing more to deliver. The relay is locked, and halted.
func (r *Relay) conclude() {
	if r.running != nil {
		return // its end comes back here
	}
	if detail := r.pending(); detail != nil {
		r.begin(detail)
		go r.passLast(detail)
		return
	}
	if r.stopped {
		r.cancel()
		if r.bound != nil {
			r.bound.Stop()
		}
	}
}

// over reports whether nothing may be delivered any more. It asks the clock, since the goroutine that ends the context may
// come after the one that asks. The relay is locked.
func (r *Relay) over() bool {
	return r.ctx.Err() != nil || r.stopped && !time.Now().Before(r.until)
}

// pending returns the newest detail if it has not been delivered and still can be, or nil. The detail of an interlude
// is never pending, because it ends with the relay. The relay is locked.
func (r *Relay) pending() *any {
	if !r.speaks() || r.over() {
		return nil
	}
	if detail := r.cell.lasting(); detail != r.delivered {
		return detail
	}
	return nil
}

// Stop ends the relay: what is being delivered, and a detail that has not been, have lastWait to
// arrive. Stop waits for neither; Wait does.
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
	if old := c.relays.Load(); old != nil {
		if i := slices.Index(*old, r); i >= 0 {
			all := slices.Delete(slices.Clone(*old), i, i+1)
			c.relays.Store(&all)
		}
	}
}

// Wait waits until the last delivery has ended, for lastWait at most. It is called after Stop. No delivery begins
// after that.
func (r *Relay) Wait() { <-r.ctx.Done() }

// Running returns a channel that is closed when the delivery in progress has ended, or nil if there is none. It is
// called after Stop, and no other delivery follows.
func (r *Relay) Running() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

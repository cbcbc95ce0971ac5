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
type Relay struct {
	state   atomic.Uint32
	due     atomic.Bool // a delivery has been decided on and has not begun
	cell    *Cell
	every   time.Duration
	deliver func(ctx context.Context, detail any)
	client  bool // delivers to the client that waits for the answer
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards the fields below, and the decision to deliver
	timer   Timer
	unhook  func() bool
	running chan struct{} // closed when the delivery in progress ends; nil if there is none
	stopped bool
}

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
	r.ctx, r.cancel = context.WithCancel(Mute(ctx))
	unhook := context.AfterFunc(ctx, r.Stop) // which may be called at once
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
	if r.stopped || r.ctx.Err() != nil { // ctx may have ended before AfterFunc calls Stop
		r.mu.Unlock()
		return
	}
	due, detail := r.due.Swap(false), r.cell.Detail()
	if due {
		r.running = make(chan struct{})
	}
	r.mu.Unlock()
	start := r.cell.Now()
	defer func() {
		_ = recover() // a delivery that panics must not end the process
		r.mu.Lock()
		defer r.mu.Unlock()
		if due {
			close(r.running)
			r.running = nil
		}
		if !r.stopped {
			r.timer = AfterFunc(r.cell.clock, r.every-(r.cell.Now()-start), r.elapsed)
		}
	}()
	if due {
		r.deliver(r.ctx, detail)
	}
}

func (r *Relay) elapsed() {
	r.mu.Lock()
	again := !r.state.CompareAndSwap(open, quiet)
	if again {
		r.state.Store(open) // before the delivery reads, so that a beat during it is new
		r.due.Store(true)
	}
	r.mu.Unlock()
	if again {
		r.run()
	}
}

// forget drops a pending delivery.
func (r *Relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.Store(false)
	r.state.CompareAndSwap(dirty, open)
}

// Stop ends the relay: no later delivery begins, and the context of the one in progress is
// cancelled. It waits for nothing.
func (r *Relay) Stop() {
	r.mu.Lock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
	unhook := r.unhook
	r.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	r.cancel()

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

// Running is called after Stop. It returns a channel that is closed when the delivery in progress
// has ended, or nil if there is none. No other delivery follows.
func (r *Relay) Running() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

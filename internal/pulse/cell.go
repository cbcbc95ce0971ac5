package pulse

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Forever is later than anything that a cell's clock can reach.
const Forever = time.Duration(math.MaxInt64)

// The states of a cell.
const (
	exact  uint32 = iota // every beat reads the clock
	hot                  // a burst: beats are absorbed until the engine flushes
	closed               // the execution has ended: beats do nothing
)

// Engine is what a cell asks of the execution that owns it. All are called with the
// cell locked.
type Engine interface {
	// Wake asks for a flush after at most d.
	Wake(d time.Duration)
	// Rearm says that the idle limit may be due earlier than it was, and the timer must be set.
	Rearm()
	// Excuses reports whether a beat or a hold at now counts although the idle limit has
	// fallen due: nobody could run, the limit is in doubt, or it is only observed. Then it has
	// called Restart or Admit.
	Excuses(now time.Duration) bool
	// Stopped reports whether the execution has been stopped, or is about to be: a limit has
	// fallen due at or before now, or the caller's context is over.
	Stopped(now time.Duration) bool
}

// A Cell is the heartbeat of one execution. Its address is its identity: it is
// embedded in the execution and must not be copied.
//
// Instants inside a cell are durations since its base, on its own clock.
type Cell struct {
	// What a beat reads, side by side so that it is one cache line.
	state  atomic.Uint32
	held   atomic.Int32 // holds that suspend the idle check; changed under mu
	parent *Cell
	last   atomic.Int64 // instant of the last beat
	idle   time.Duration
	base   time.Time
	clock  Clock
	offset time.Duration // from the parent's scale to this one's ...
	shared bool          // ... where both are on the standard clock

	count   atomic.Uint64
	longest atomic.Int64
	burst   atomic.Int64 // instant at which the count was last a multiple of burstLen
	detail  atomic.Pointer[any]
	relays  atomic.Pointer[[]*Relay] // replaced under mu, never changed in place
	engine  Engine
	View    atomic.Value // the *heartbeat.Monitor, if somebody has asked for it

	mu      sync.Mutex // guards what follows, and every change of state and held
	holds   int32      // holds not yet released, those of nested executions included
	refused int32      // those of them that came when the limit had fallen due
	rare    *rare      // nil for most
}

// A rare is what few cells have, under the cell's lock.
type rare struct {
	// When the check was suspended, if it is, and for how long it has been before.
	heldSince, heldBefore time.Duration

	interludes []*interlude // that have not ended
	probes     []*probePart
	asked      time.Duration // the instant at which the limit had fallen due when the probes were asked last
}

// rarely makes c.rare where there is none. The cell is locked.
func (c *Cell) rarely() *rare {
	if c.rare == nil {
		c.rare = new(rare)
	}
	return c.rare
}

type key struct{}

// Of returns the innermost cell of ctx, or nil.
func Of(ctx context.Context) *Cell {
	c, _ := ctx.Value(key{}).(*Cell)
	return c
}

type unmutedKey struct{}

// Unmuted is Of through a context of Mute as well.
func Unmuted(ctx context.Context) *Cell {
	c, _ := ctx.Value(unmutedKey{}).(*Cell)
	return c
}

// IsKey reports whether k is a key under which a context has its cell. The
// execution is itself the context, so that it costs no allocation of its own.
func IsKey(k any) bool { return k == key{} || k == unmutedKey{} }

// Init starts the cell at its clock's present instant, which counts as its first
// sign of life and as a beat of the executions around it. A nil clk means the
// parent's clock.
func (c *Cell) Init(parent *Cell, clk Clock, idle time.Duration, e Engine) {
	if clk == nil && parent != nil {
		clk = parent.clock
	}
	c.parent, c.clock, c.idle, c.engine = parent, clk, idle, e
	c.base = Now(clk)
	if parent != nil {
		c.shared = clk == nil && parent.clock == nil
		c.offset = c.base.Sub(parent.base)
		parent.Beat()
	}
}

// Around is the cell of the execution around, or nil.
func (c *Cell) Around() *Cell { return c.parent }

// Engine is what judges the cell; nil of none.
func (c *Cell) Engine() Engine {
	if c == nil {
		return nil
	}
	return c.engine
}

// Start is the instant of Init on the clock's own scale.
func (c *Cell) Start() time.Time { return c.base }

// Clock is the clock that the cell runs on; nil is the standard one.
func (c *Cell) Clock() Clock {
	if c == nil {
		return nil
	}
	return c.clock
}

// Now is the present instant.
func (c *Cell) Now() time.Duration {
	if c.clock == nil {
		return time.Since(c.base)
	}
	return c.clock.Now().Sub(c.base)
}

// Lock stops holds, bursts, flushes and the end of the cell, not beats.
func (c *Cell) Lock() { c.mu.Lock() }

// Unlock undoes Lock.
func (c *Cell) Unlock() { c.mu.Unlock() }

// Last is the instant of the last beat. During a burst it is up to a burst's
// length behind.
func (c *Cell) Last() time.Duration { return time.Duration(c.last.Load()) }

// LastTime is Last on the clock's own scale.
func (c *Cell) LastTime() time.Time { return c.base.Add(c.Last()) }

// Count is the number of beats recorded.
func (c *Cell) Count() uint64 { return c.count.Load() }

// Longest is the longest stretch without a beat up to now, without those in which the
// idle check was held. The stamp is read first: a beat that lifts it has noted the gap
// before.
func (c *Cell) Longest(now time.Duration) time.Duration {
	gap := now - c.Last()
	longest := time.Duration(c.longest.Load())
	if c.held.Load() > 0 {
		return longest
	}
	return max(longest, gap)
}

// SmallestIdle is the smallest idle limit of the cell and those around it, or 0
// where none of them has one.
func (c *Cell) SmallestIdle() time.Duration {
	var least time.Duration
	for ; c != nil; c = c.parent {
		if c.idle > 0 && (least == 0 || c.idle < least) {
			least = c.idle
		}
	}
	return least
}

// IdleDue is the instant at which the idle limit falls due, Forever when nothing
// but a beat or a release can make it do so. The cell is locked.
func (c *Cell) IdleDue() time.Duration {
	last := c.Last()
	switch {
	case c.idle <= 0:
		return Forever
	case c.held.Load() > 0 || c.idle > Forever-last:
		return Forever
	}
	return last + c.idle
}

// Held reports whether the idle check is suspended, and for how long it has been at now:
// the present time, and all of them together. The cell is locked.
func (c *Cell) Held(now time.Duration) (yes bool, present, all time.Duration) {
	if c.rare == nil {
		return false, 0, 0
	}
	if yes = c.held.Load() > 0; yes {
		present = max(now-c.rare.heldSince, 0)
	}
	return yes, present, c.rare.heldBefore + present
}

// Detail is the newest detail, nil where no beat has carried one.
func (c *Cell) Detail() any {
	if d := c.detail.Load(); d != nil {
		return *d
	}
	return nil
}

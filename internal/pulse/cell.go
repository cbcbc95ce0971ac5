package pulse

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Forever is an instant that the clock of a cell never reaches.
const Forever = time.Duration(math.MaxInt64)

// The states of a cell.
const (
	exact  uint32 = iota // every beat reads the clock
	hot                  // a burst: beats are absorbed until the engine flushes
	closed               // the execution has ended: beats do nothing
)

// Engine is the interface of a cell to the execution that owns it. All methods are called with the cell locked.
type Engine interface {
	// Wake makes the engine flush the cell within d.
	Wake(d time.Duration)
	// Rearm makes the engine set its timer again, because the idle limit may fall due earlier than before.
	Rearm()
	// Renew reports a beat at now, the first at or after the instant of RenewFrom. The engine may
	// set its timer to a later instant.
	Renew(now time.Duration)
	// Excuses reports whether a beat or a hold at now counts although the idle limit has fallen due: because nothing
	// could run, because the limit is in doubt, or because it is only observed. If so, it has called Restart or Admit.
	Excuses(now time.Duration) bool
	// Stopped reports whether the execution has been stopped or is about to be: a limit has fallen
	// due at or before now, or the caller's context has ended.
	Stopped(now time.Duration) bool
}

// A Cell is the heartbeat of one execution. Its address is its identity: it is
// embedded in the execution and must not be copied.
//
// Instants inside a cell are durations since its base, on its own clock.
type Cell struct {
	// A beat without an enclosing execution reads only the fields down to the first word of clock. They take 96
	// bytes, which lie in two cache lines if the cell is first in an allocation that is aligned to 32 bytes. With
	// 100,000 executions each of these lines is a cache miss.
	state   atomic.Uint32
	held    atomic.Int32 // holds that suspend the idle check; changed under mu
	last    atomic.Int64 // instant of the last beat
	renew   atomic.Int64 // instant from which a beat renews the timer; written under mu
	idle    time.Duration
	base    time.Time
	parent  *Cell
	count   atomic.Uint64            // number of recorded beats
	longest atomic.Int64             // longest gap between two beats, in nanoseconds
	relays  atomic.Pointer[[]*Relay] // replaced under mu, never changed in place
	clock   Clock

	offset time.Duration // added to an instant of this cell, gives that of the parent; valid if shared
	burst  atomic.Int64  // instant of the last beat whose count was a multiple of burstLen; after the end, of the last beat
	detail atomic.Pointer[any]
	engine Engine

	shared  bool       // the cell and its parent are on the standard clock
	mu      sync.Mutex // guards the fields below, and every change of state and held
	holds   int32      // unreleased holds, including those of nested executions
	refused int32      // the part of holds that came after the limit had fallen due
	rare    *rare      // nil in most cells
}

// A rare holds the fields that few cells need. The cell's lock guards it.
type rare struct {
	// The start of the present suspension of the check, if any, and the length of all earlier ones.
	heldSince, heldBefore time.Duration

	interludes []*interlude // interludes in progress
	voices     []*voice
	probes     []*probePart
	probedDue  time.Duration // instant at which the idle limit fell due for which AskProbes last started looks
}

// rarely returns c.rare. It allocates c.rare if that is nil. The cell is locked.
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

// Unmuted is Of, except that it also finds a cell that Mute has hidden.
func Unmuted(ctx context.Context) *Cell {
	c, _ := ctx.Value(unmutedKey{}).(*Cell)
	return c
}

// IsKey reports whether k is a key under which a context returns its cell. An execution, which is
// itself a context, needs it for its Value method.
func IsKey(k any) bool { return k == key{} || k == unmutedKey{} }

// Init starts the cell at the present instant of its clock, which counts as its first sign of life.
// It also beats the enclosing executions. If clk is nil, the cell uses the parent's clock.
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

// RenewFrom makes the first beat at or after the instant call the engine's Renew. With Forever no
// beat calls it, and neither does any beat of a cell on another clock than the standard one, because
// such a beat may come from a timer of that clock. The cell is locked.
func (c *Cell) RenewFrom(at time.Duration) {
	if c.clock != nil {
		at = Forever
	}
	c.renew.Store(int64(at))
}

// Enclosing returns the cell of the enclosing execution, or nil.
func (c *Cell) Enclosing() *Cell { return c.parent }

// Engine returns the engine that judges the cell, or nil if c is nil.
func (c *Cell) Engine() Engine {
	if c == nil {
		return nil
	}
	return c.engine
}

// Start returns the time of Init.
func (c *Cell) Start() time.Time { return c.base }

// Clock returns the clock of the cell, or nil, which means the standard clock, if c is nil or uses that.
func (c *Cell) Clock() Clock {
	if c == nil {
		return nil
	}
	return c.clock
}

// Now returns the present instant, as the time since Start.
func (c *Cell) Now() time.Duration {
	if c.clock == nil {
		return time.Since(c.base)
	}
	return c.clock.Now().Sub(c.base)
}

// Lock locks the cell. Until Unlock, holds, flushes, the beginning of a burst and the end of the cell
// wait. Most beats do not wait; see Beat.
func (c *Cell) Lock() { c.mu.Lock() }

// Unlock undoes Lock.
func (c *Cell) Unlock() { c.mu.Unlock() }

// Last returns the instant of the last beat. During a burst it may be older than the last beat by up to BurstSpan.
func (c *Cell) Last() time.Duration { return time.Duration(c.last.Load()) }

// Newest is Last, except that it also counts beats after the end of the cell.
func (c *Cell) Newest() time.Duration { return max(c.Last(), time.Duration(c.burst.Load())) }

// LastTime returns Last as a time.
func (c *Cell) LastTime() time.Time { return c.base.Add(c.Last()) }

// Count returns the number of recorded beats.
func (c *Cell) Count() uint64 { return c.count.Load() }

// Longest returns the longest time without a beat up to now, not counting suspensions of the idle
// check. It reads the stamp first: a beat that raises the stamp has stored its gap before.
func (c *Cell) Longest(now time.Duration) time.Duration {
	gap := now - c.Last()
	longest := time.Duration(c.longest.Load())
	if c.held.Load() > 0 {
		return longest
	}
	return max(longest, gap)
}

// SmallestIdle returns the smallest idle limit of the cell and the enclosing ones, or 0 if there is none.
func (c *Cell) SmallestIdle() time.Duration {
	var least time.Duration
	for ; c != nil; c = c.parent {
		if c.idle > 0 && (least == 0 || c.idle < least) {
			least = c.idle
		}
	}
	return least
}

// IdleDue returns the instant at which the idle limit falls due unless there is a beat before, or
// Forever if there is no limit, or if the check is suspended. The cell is locked.
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

// Held reports whether the idle check is suspended. It returns the length of the present suspension,
// or 0, and the length of all suspensions up to now together. The cell is locked.
func (c *Cell) Held(now time.Duration) (yes bool, present, all time.Duration) {
	if c.rare == nil {
		return false, 0, 0
	}
	if yes = c.held.Load() > 0; yes {
		present = max(now-c.rare.heldSince, 0)
	}
	return yes, present, c.rare.heldBefore + present
}

// Detail returns the newest detail, or nil if no beat has carried one.
func (c *Cell) Detail() any { return valueOf(c.detail.Load()) }

func valueOf(detail *any) any {
	if detail == nil {
		return nil
	}
	return *detail
}

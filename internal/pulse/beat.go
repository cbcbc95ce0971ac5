package pulse

import "time"

// A cell that records burstLen beats within BurstSpan goes hot: a beat is then a single load of the
// state, until the engine's timer flushes the cell, at most BurstSpan later. Bursts are found by
// counting, because the gap between two beats says nothing: if a goroutine is descheduled in the
// middle of a burst, the gap is long.
const (
	burstLen  = 128
	BurstSpan = time.Millisecond
)

// Beat records a sign of life in c and in every enclosing cell, up to the first that has ended. It
// is safe on a nil cell and for concurrent use. It takes a lock only when a burst begins.
func (c *Cell) Beat() {
	if c == nil || (c.state.Load() == hot && c.parent == nil) {
		return
	}
	c.beat(nil)
}

// BeatWith is Beat, and also stores *detail as the newest detail of each of these cells.
func (c *Cell) BeatWith(detail *any) {
	if c != nil {
		c.beat(detail)
	}
}

// Describe stores *detail as BeatWith does, and is no beat: relays get it with the next one.
func (c *Cell) Describe(detail *any) {
	for ; c != nil && c.state.Load() != closed; c = c.parent {
		c.detail.Store(detail)
	}
}

func (c *Cell) beat(detail *any) {
	var now time.Duration
	read := false // reports whether now is the present instant on c's scale
	for c != nil {
		state := c.state.Load()
		if state == closed {
			if !read {
				now = c.Now()
			}
			c.burst.Store(int64(now)) // of a function that was abandoned, for Newest alone
			return
		}
		if detail != nil {
			c.detail.Store(detail)
		}
		if state == exact {
			if !read {
				now, read = c.Now(), true
			}
			c.record(now)
		}
		if detail != nil || state == exact {
			c.notify()
		}
		now += c.offset
		read = read && c.shared
		c = c.parent
	}
}

// record stamps a beat at now.
func (c *Cell) record(now time.Duration) {
	if !c.raise(now) {
		// The beat is too late, or looks so: a flush that has ended the burst but not yet raised
		// the stamp makes any beat look late. The flush holds the lock. The engine may also have an
		// excuse for the beat.
		c.mu.Lock()
		ok := c.raise(now) || c.engine.Excuses(now)
		c.mu.Unlock()
		if !ok {
			return
		}
	}
	if now >= time.Duration(c.renew.Load()) {
		c.mu.Lock()
		if c.state.Load() == exact && now >= time.Duration(c.renew.Load()) {
			c.engine.Renew(now)
		}
		c.mu.Unlock()
	}
	if n := c.count.Add(1); n%burstLen == 0 && c.clock == nil {
		if now-time.Duration(c.burst.Swap(int64(now))) < BurstSpan {
			c.goHot()
		}
	}
}

// raise lifts the stamp to now. If the idle limit has fallen due, it lifts nothing and reports
// false.
func (c *Cell) raise(now time.Duration) bool {
	for {
		last := c.last.Load()
		gap := now - time.Duration(last)
		if gap <= 0 {
			return true // a beat on another core read the clock later than this one
		}
		held := c.held.Load() > 0
		if c.idle > 0 && gap >= c.idle && !held {
			return false
		}
		// The gap is stored first: a reader that sees the new stamp must find the gap that it
		// ended. If another beat overtakes this one, the stored gap is a little too long.
		if int64(gap) > c.longest.Load() && !held {
			c.lengthen(int64(gap))
		}
		if c.last.CompareAndSwap(last, int64(now)) {
			return true
		}
	}
}

func (c *Cell) lengthen(gap int64) {
	for {
		old := c.longest.Load()
		if gap <= old || c.longest.CompareAndSwap(old, gap) {
			return
		}
	}
}

func (c *Cell) goHot() {
	c.mu.Lock()
	if c.state.Load() == exact {
		c.state.Store(hot)
		c.engine.Wake(BurstSpan)
	}
	c.mu.Unlock()
}

// Flush ends a burst and returns the present instant. The order keeps an absorbed beat from being
// stamped too old: the state is cleared before the clock is read, so every beat that saw it set was
// made before that reading. The cell is locked.
func (c *Cell) Flush() (now time.Duration) {
	if c.state.Load() != hot {
		return c.Now()
	}
	c.state.Store(exact)
	now = c.Now()
	c.lift(now)
	c.notify()
	return now
}

// Restart makes the idle limit count again from now. The time before does not count as a gap of the
// tool. The cell is locked.
func (c *Cell) Restart(now time.Duration) { c.lift(now) }

// Admit makes the idle limit count again from now, like a beat in time. The cell is locked.
func (c *Cell) Admit(now time.Duration) {
	if gap := now - c.Last(); gap > 0 {
		c.lengthen(int64(gap))
	}
	c.lift(now)
}

// lift raises the stamp to now, whatever the limit.
func (c *Cell) lift(now time.Duration) {
	for {
		last := c.last.Load()
		if int64(now) <= last || c.last.CompareAndSwap(last, int64(now)) {
			return
		}
	}
}

package pulse

import "time"

// A cell that records burstLen beats within BurstSpan becomes hot: a beat is then a single load of the state, until the
// engine's timer flushes the cell, at most BurstSpan later. A burst is detected by counting, because the gap between
// two beats may be long even in a burst, if a goroutine is descheduled.
const (
	burstLen  = 128
	BurstSpan = time.Millisecond
)

// Beat records a sign of life in c and in every enclosing cell, up to the first that has ended. It
// is safe on a nil cell and for concurrent use. It takes a lock only when a burst begins, when the
// engine renews its timer, or when the beat seems late.
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

// Describe stores *detail as BeatWith does, but is not a beat: relays deliver the detail with the next beat.
func (c *Cell) Describe(detail *any) {
	for ; c != nil && c.state.Load() != closed; c = c.parent {
		c.detail.Store(detail)
	}
}

// beat records a beat of c and of each cell above it, and stores detail in them unless it is nil. At a closed cell it
// stops: only Newest counts that beat.
func (c *Cell) beat(detail *any) {
	var now time.Duration
	read := false // reports whether now is the present instant on c's scale
	for c != nil {
		state := c.state.Load()
		if state == closed {
			if !read {
				now = c.Now()
			}
			c.burst.Store(int64(now)) // a beat of an abandoned function, which only Newest counts
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

// record records a beat at now in c alone: it raises the stamp, lets the engine renew its timer, and counts.
func (c *Cell) record(now time.Duration) {
	if !c.raise(now) {
		// The beat is too late, or only seems to be: between the moment at which a flush ends the
		// burst and the moment at which it raises the stamp, any beat seems late. The flush holds the
		// lock, so try again under it. The engine may also excuse the beat.
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

// raise raises the stamp to now and returns true. If the idle limit has fallen due at or before now,
// it changes nothing and returns false.
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

// lengthen raises c.longest to gap.
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

// Flush ends a burst, if there is one, stamps it, and returns the present instant. It clears the hot
// state before it reads the clock. Therefore every beat that the burst absorbed came before the
// reading, and the stamp is not too old. The cell is locked.
func (c *Cell) Flush() (now time.Duration) {
	if c.state.Load() != hot {
		return c.Now()
	}
	c.state.Store(exact)
	now = c.Now()
	c.Restart(now)
	c.notify()
	return now
}

// Restart makes the idle limit count again from now, even if it has fallen due. The time since the last beat is left
// out of Longest. The cell is locked.
func (c *Cell) Restart(now time.Duration) {
	for {
		last := c.last.Load()
		if int64(now) <= last || c.last.CompareAndSwap(last, int64(now)) {
			return
		}
	}
}

// Admit makes the idle limit count again from now, like a beat that came in time. The time since the
// last beat counts in Longest. The cell is locked.
func (c *Cell) Admit(now time.Duration) {
	if gap := now - c.Last(); gap > 0 {
		c.lengthen(int64(gap))
	}
	c.Restart(now)
}

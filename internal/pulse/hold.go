package pulse

import (
	"sync"
	"time"
)

// Hold suspends the idle check of c and of every enclosing cell until release is called or the cell
// ends. Holds nest. Only the first call of a release counts.
//
// Both the hold and its release are signs of life: the idle limit counts again from the release.
func (c *Cell) Hold() (release func()) {
	c.Suspend()
	return sync.OnceFunc(c.Resume)
}

// Suspend is Hold for callers that suspend and resume the check many times: it allocates nothing. Each
// call lasts until a call of Resume or the end of the cell.
func (c *Cell) Suspend() {
	c.mu.Lock()
	c.climb(1)
}

// Resume undoes one Suspend.
func (c *Cell) Resume() {
	c.mu.Lock()
	c.climb(-1)
}

// Backdate makes the idle limit count from d before now. Call it right after a Resume if the silence began before the
// check was suspended. It does nothing while the check is suspended, or after the limit has fallen due.
func (c *Cell) Backdate(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Flush()
	if c.state.Load() == closed || c.held.Load() > 0 || c.idle > 0 && now-c.Last() >= c.idle {
		return
	}
	c.last.Store(int64(now - d))
	c.engine.Rearm()
}

// climb adds n holds, or removes -n, in c and in the enclosing cells, up to the first that has ended.
// The end of that cell has already removed its holds, and those of the cells within it, further out.
//
// c is locked, and unlocked on return. Each parent is locked before its child is unlocked. Otherwise the end of a cell
// could overtake a hold on its way up, and the parent would for a moment miss a hold from elsewhere.
func (c *Cell) climb(n int32) {
	for c.state.Load() != closed {
		c.hold(n)
		p := c.parent
		if p == nil {
			break
		}
		p.mu.Lock()
		c.mu.Unlock()
		c = p
	}
	c.mu.Unlock()
}

func (c *Cell) hold(n int32) {
	now := c.Flush()
	c.holds += n
	if n < 0 {
		// Only the number of refused holds matters, not which ones they were.
		r := min(c.refused, -n)
		c.refused -= r
		if n += r; n == 0 {
			return
		}
	}
	if gap := now - c.Last(); c.held.Load() == 0 {
		switch {
		case c.idle <= 0 || gap < c.idle:
			c.lengthen(int64(gap))
		case !c.engine.Excuses(now):
			c.refused += n
			return // too late: the check is not suspended, and the limit fires
		}
	}
	c.Restart(now)
	switch is := c.held.Add(n); is {
	case n: // no hold came before
		c.rarely().heldSince = now
		c.notifyHold()
	case 0:
		c.notifyHold()
		c.rare.heldBefore += now - c.rare.heldSince
		c.engine.Rearm()
	}
}

// Ended reports whether End has been called.
func (c *Cell) Ended() bool { return c.state.Load() == closed }

// End ends the cell: later beats count for Newest alone, the relays are stopped, and the holds of c
// are removed from the enclosing cells.
func (c *Cell) End() {
	c.mu.Lock()
	c.state.Store(closed)
	relays := c.relays.Swap(nil)
	n := c.holds
	if c.held.Swap(0) > 0 {
		c.rare.heldBefore += c.Now() - c.rare.heldSince
	}
	if p := c.parent; p != nil && n > 0 {
		p.mu.Lock()
		c.mu.Unlock()
		p.climb(-n)
	} else {
		c.mu.Unlock()
	}
	if relays != nil {
		for _, r := range *relays {
			r.Stop()
		}
	}
}

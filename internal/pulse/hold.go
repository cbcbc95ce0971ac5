package pulse

// Hold suspends the idle check here and in every cell around until release is
// called or the cell ends. Holds nest; a release counts once.
//
// Declaring a wait is a sign of life, and so is ending it: the idle limit counts
// afresh from the release.
func (c *Cell) Hold() (release func()) {
	c.mu.Lock()
	c.climb(1)
	released := false
	return func() {
		c.mu.Lock()
		if released {
			c.mu.Unlock()
			return
		}
		released = true
		c.climb(-1)
	}
}

// Suspend is Hold for one who suspends and resumes in turn, many times: it allocates
// nothing. Each call needs a Resume, or the end of the cell.
func (c *Cell) Suspend() {
	c.mu.Lock()
	c.climb(1)
}

// Resume undoes one Suspend.
func (c *Cell) Resume() {
	c.mu.Lock()
	c.climb(-1)
}

// climb adds n holds to c and to the cells around it, up to the first that has
// ended; that one has given back its holds, those of the cells within it included.
//
// c is locked, and unlocked on return. Each parent is locked before its child is
// let go: otherwise the end of a cell could overtake a hold on its way up, and the
// parent would for a moment miss a hold that somebody else has.
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
		// Whose hold was refused does not matter, only how many were.
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
	c.lift(now)
	switch is := c.held.Add(n); is {
	case n: // it was not held
		c.rarely().heldSince = now
	case 0:
		c.rare.heldBefore += now - c.rare.heldSince
		c.engine.Rearm()
	}
}

// End makes every later beat do nothing, ends the relays, and takes back the
// holds that the cells around keep on behalf of this one.
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

package pulse

import "slices"

// An interlude is one call of Interlude as one cell sees it. It is in the cell's list until it
// ends, and for ever in that of an execution that was stopped before.
type interlude struct {
	detail, before *any
}

// Interlude is BeatWith, until end is called: that brings back what was the newest detail before
// in every cell on the way, unless a newer one has come meanwhile. Interludes may overlap and
// end in any order: what comes back is never that of one that is over. The end is not a beat, and
// nothing is delivered on its account: what was pending is dropped with the interlude, and
// relays learn of the detail that is back with the next beat.
//
// In the cell of an execution that has been stopped the detail stays: it is where that had got
// to.
//
// A relay reads the detail and decides to deliver it under one lock. So it delivers the
// interlude's, or it has forgotten it by the time that it finds another.
func (c *Cell) Interlude(detail *any) (end func()) {
	type part struct {
		cell *Cell
		*interlude
	}
	var parts []part
	for p := c; p != nil && p.state.Load() != closed; p = p.parent {
		i := &interlude{detail: detail}
		p.mu.Lock()
		i.before = p.detail.Swap(detail) // at once: no detail may be lost in between
		r := p.rarely()
		r.interludes = append(r.interludes, i)
		p.mu.Unlock()
		parts = append(parts, part{p, i})
	}
	c.beat(nil)
	return func() {
		for _, p := range parts {
			p.cell.endInterlude(p.interlude)
		}
	}
}

func (c *Cell) endInterlude(i *interlude) {
	c.mu.Lock()
	if c.state.Load() == closed || c.engine.Stopped(c.Flush()) {
		c.mu.Unlock()
		return
	}
	c.rare.interludes = slices.DeleteFunc(c.rare.interludes, func(o *interlude) bool { return o == i })
	c.mu.Unlock()
	if relays := c.relays.Load(); relays != nil {
		for _, r := range *relays {
			r.forget()
		}
	}
	c.mu.Lock()
	for _, o := range c.rare.interludes {
		if o.before == i.detail {
			o.before = i.before // it may be what another would bring back
		}
	}
	newest := c.detail.CompareAndSwap(i.detail, i.before)
	c.mu.Unlock()
	if !newest {
		c.notify() // of what came meanwhile, and was just forgotten
	}
}

// Lasting is Detail without the interludes: the newest that none of them will take back.
func (c *Cell) Lasting() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.detail.Load()
	for under := c.rare != nil; under; {
		under = false
		for _, i := range c.rare.interludes {
			if i.detail == d {
				d, under = i.before, true
				break
			}
		}
	}
	if d == nil {
		return nil
	}
	return *d
}

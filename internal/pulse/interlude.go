package pulse

import "slices"

// An interlude is the effect of one call of Interlude on one cell. It is in the cell's list until
// its end, or for ever if the execution was stopped first.
type interlude struct {
	detail, before *any
}

// Interlude sets *detail as the detail of c and of the enclosing cells until end is called. It is not
// a beat: relays deliver the detail with the next beat or hold. In each cell, end restores the detail
// from before, unless a newer one has been set meanwhile. Interludes may overlap and end in any
// order: end never restores the detail of an interlude that is over. The end is not a beat either.
// It drops a pending delivery, and relays deliver the restored detail with the next beat.
//
// In the cell of a stopped execution the detail stays, because it shows how far the execution got.
//
// A relay reads the detail and decides to deliver it under one lock. So it either delivers the
// detail of the interlude, or end drops the delivery before the relay reads the restored detail.
func (c *Cell) Interlude(detail *any) (end func()) {
	type part struct {
		cell *Cell
		*interlude
	}
	var parts []part
	for p := c; p != nil && p.state.Load() != closed; p = p.parent {
		i := &interlude{detail: detail}
		p.mu.Lock()
		i.before = p.detail.Swap(detail) // one step, so that no detail is lost in between
		r := p.rarely()
		r.interludes = append(r.interludes, i)
		p.mu.Unlock()
		parts = append(parts, part{p, i})
	}
	return func() {
		for _, p := range parts {
			p.cell.endInterlude(p.interlude)
		}
	}
}

// Note is Interlude, except that relays deliver the detail at once. Note is not a beat.
func (c *Cell) Note(detail *any) (end func()) {
	end = c.Interlude(detail)
	for p := c; p != nil && p.state.Load() != closed; p = p.parent {
		p.notify()
	}
	return end
}

// A Status is a detail that describes the state of an execution, and not the progress of its work. It is delivered to
// clients like any other detail.
type Status string

func (c *Cell) endInterlude(i *interlude) {
	c.mu.Lock()
	if c.state.Load() == closed || c.engine.Stopped(c.Flush()) {
		c.mu.Unlock()
		return
	}
	c.rare.interludes = slices.DeleteFunc(c.rare.interludes, func(o *interlude) bool { return o == i })
	c.mu.Unlock()
	for _, r := range c.active() {
		r.forget()
	}
	c.mu.Lock()
	for _, o := range c.rare.interludes {
		if o.before == i.detail {
			o.before = i.before // o must not restore the detail of i
		}
	}
	newest := c.detail.CompareAndSwap(i.detail, i.before)
	c.mu.Unlock()
	if !newest {
		c.notify() // for the delivery of a newer detail that forget may have dropped
	}
}

// Lasting returns the newest detail that does not belong to an interlude in c's list, or nil if there is none.
func (c *Cell) Lasting() any { return valueOf(c.lasting()) }

func (c *Cell) lasting() *any {
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
	return d
}

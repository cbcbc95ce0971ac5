package pulse

import "slices"

// An interlude is one call of Interlude, as seen by one cell. It is in the cell's list until it
// ends, or for ever if the execution was stopped first.
type interlude struct {
	detail, before *any
}

// Interlude sets a detail that lasts until end is called. It is no beat: relays see the detail with
// the next one. In every cell, end brings back the detail from before, unless a newer one has come
// meanwhile. Interludes may overlap and end in any order: end never brings back the detail of an
// interlude that is over. The end is not a beat and causes no delivery. It drops a pending delivery,
// and relays see the restored detail with the next beat.
//
// In the cell of a stopped execution the detail stays, because it tells how far the execution had
// come.
//
// A relay reads the detail and decides to deliver it under one lock. So it either delivers the
// interlude's detail, or has forgotten the delivery by the time that it reads another.
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

// Note is Interlude, except that the idle limit runs on. Relays deliver the detail.
func (c *Cell) Note(detail *any) (end func()) {
	end = c.Interlude(detail)
	for p := c; p != nil && p.state.Load() != closed; p = p.parent {
		p.notify()
	}
	return end
}

// A Status is a detail that describes the state of an execution and is not progress of its work. Clients get it like
// any other detail.
type Status string

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
			o.before = i.before // another interlude might have brought it back
		}
	}
	newest := c.detail.CompareAndSwap(i.detail, i.before)
	c.mu.Unlock()
	if !newest {
		c.notify() // for a detail that came meanwhile and was just forgotten
	}
}

// Lasting returns the newest detail that does not belong to an interlude.
func (c *Cell) Lasting() any {
	if d := c.lasting(); d != nil {
		return *d
	}
	return nil
}

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

package pulse

// Interlude is BeatWith, until end is called: that brings back what was the newest detail before
// in every cell on the way, unless a newer one has come meanwhile. The end is not a beat, and
// nothing is delivered on its account: what was pending is dropped with the interlude, and
// relays learn of the detail that is back with the next beat.
//
// A relay reads the detail and decides to deliver it under one lock. So it delivers the
// interlude's, or it has forgotten it by the time that it finds another.
func (c *Cell) Interlude(detail *any) (end func()) {
	type state struct {
		cell   *Cell
		detail *any
	}
	var before []state
	for p := c; p != nil && p.state.Load() != closed; p = p.parent {
		before = append(before, state{p, p.detail.Load()})
	}
	c.BeatWith(detail)
	return func() {
		for _, s := range before {
			if relays := s.cell.relays.Load(); relays != nil {
				for _, r := range *relays {
					r.forget()
				}
			}
			if !s.cell.detail.CompareAndSwap(detail, s.detail) {
				s.cell.notify() // of what came meanwhile, and was just forgotten
			}
		}
	}
}

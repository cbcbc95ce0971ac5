package pulse

import "slices"

// A voice has words for an execution whose details have none.
type voice struct{ say func() string }

// Voice lets say speak for the cell and for those that enclose it, until end is called. Its words stand in
// for those that the tool does not give (SPEC 7.3); they are no detail, and no beat. say must not block.
func (c *Cell) Voice(say func() string) (end func()) {
	v := &voice{say}
	for p := c; p != nil; p = p.parent {
		p.mu.Lock()
		r := p.rarely()
		r.voices = append(r.voices, v)
		p.mu.Unlock()
	}
	return func() {
		for p := c; p != nil; p = p.parent {
			p.mu.Lock()
			p.rare.voices = slices.DeleteFunc(p.rare.voices, func(o *voice) bool { return o == v })
			p.mu.Unlock()
		}
	}
}

// Words returns what the newest voice says that says anything, or "".
func (c *Cell) Words() string {
	c.mu.Lock()
	var voices []*voice
	if c.rare != nil {
		voices = slices.Clone(c.rare.voices)
	}
	c.mu.Unlock()
	for _, v := range slices.Backward(voices) {
		if words := v.say(); words != "" {
			return words
		}
	}
	return ""
}

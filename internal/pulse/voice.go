package pulse

import "slices"

// A voice supplies a text about an execution whose details have no text.
type voice struct{ say func() string }

// Voice registers say with the cell and the enclosing cells until end is called. Words returns the text of
// say, which is used if the tool gives no text itself (SPEC 7.3). That text is neither a detail nor a
// beat. say must not block. It returns "" if it has no text.
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

// Words returns the text of the newest voice that has any, or "" if none has. It calls the voices without the lock.
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

package capture

import "bytes"

// divide passes on the output in a chunk, and keeps the stacks in it. If there is no output, no sink gets the chunk,
// and divide itself sends sunk the values that the collector waits for.
func (c *Capture) divide(s *stream, buf *buffer, n int, sunk chan<- struct{}) {
	if n == 0 {
		c.giveBack(s, nil)
		c.pass(s, buf, 0, sunk)
		return
	}
	output, stacks := s.divider.Add(buf[:n])
	if len(stacks) > 0 {
		c.keepStacks(s, stacks)
	}
	if len(output) > 0 {
		c.passBytes(s, output, sunk)
		return
	}
	if sunk != nil {
		for range c.sinksOf(s) {
			sunk <- struct{}{} // there is room for them
		}
	}
}

// giveBack passes on what the divider has held back.
func (c *Capture) giveBack(s *stream, sunk chan<- struct{}) {
	if s.divider == nil {
		return
	}
	output, stacks := s.divider.End()
	if len(stacks) > 0 {
		c.keepStacks(s, stacks)
	}
	if len(output) > 0 {
		c.passBytes(s, output, sunk)
	}
}

// passBytes passes on output that is in no buffer, in as many chunks as it takes. sunk gets its values after the last.
func (c *Capture) passBytes(s *stream, output []byte, sunk chan<- struct{}) {
	for len(output) > 0 {
		buf := buffers.Get().(*buffer)
		n := copy(buf[:], output)
		output = output[n:]
		var last chan<- struct{}
		if len(output) == 0 {
			last = sunk
		}
		if !c.pass(s, buf, n, last) {
			buffers.Put(buf)
		}
	}
}

func (c *Capture) keepStacks(s *stream, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.stacks
	k.total += int64(len(text))
	k.lines += int64(bytes.Count(text, []byte{'\n'}))
	room := maxStacks - len(k.kept[0]) - len(k.kept[1])
	k.kept[s.id] = append(k.kept[s.id], text[:min(room, len(text))]...)
}

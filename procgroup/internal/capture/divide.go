package capture

import "bytes"

// divide is received during a dump of stacks: it keeps the stacks in the bytes of buf, and passes on the rest, the
// output. If the divider yields no output, no sink gets a chunk, and divide itself sends on sunk the values that the
// collector waits for. The caller holds s.passing.
func (c *Capture) divide(s *stream, buf *buffer, n int, sunk chan<- struct{}) {
	if n == 0 {
		c.giveBack(s)
		c.pass(s, buf, 0, sunk)
		return
	}
	output, stacks := s.divider.Add(buf[:n])
	c.keepStacks(s, stacks)
	if len(output) > 0 {
		c.passBytes(s, output, sunk)
		return
	}
	if sunk != nil {
		for range c.sinksOf(s) {
			sunk <- struct{}{} // does not block: the channel has room for a value of each sink
		}
	}
}

// giveBack takes the bytes that the divider has held back, and keeps them as stacks or passes them on as output. The
// caller holds s.passing.
func (c *Capture) giveBack(s *stream) {
	if s.divider == nil {
		return
	}
	output, stacks := s.divider.End()
	c.keepStacks(s, stacks)
	c.passBytes(s, output, nil)
}

// passBytes copies output into buffers and passes them on. The sinks send on sunk only after the last of them.
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

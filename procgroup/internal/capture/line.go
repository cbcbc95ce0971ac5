package capture

// said notes the newest output for Line. It is called before the beat, so that a relay that delivers the
// beat finds the output.
func (c *Capture) said(s *stream, data []byte) {
	c.saying.Lock()
	defer c.saying.Unlock()
	s.said, c.speaker = lastBytes(s.said, data), s
}

// Line returns the newest line of the output that is not blank, finished or not, as a person would read it: the line in
// which the cursor stands, or the next one above it. It returns "" if there is none.
func (c *Capture) Line() string {
	c.mu.Lock()
	config := c.shown()
	c.mu.Unlock()
	c.saying.Lock()
	defer c.saying.Unlock()
	if c.speaker == nil {
		return ""
	}
	said := c.speaker.said
	return short(shownLast(said, len(said) >= maxTail, config).Newest())
}

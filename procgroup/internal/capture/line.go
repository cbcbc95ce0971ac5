package capture

// said notes the newest output for Line. It is called before the beat, so that whoever hears of the beat
// finds it.
func (c *Capture) said(s *stream, data []byte) {
	c.saying.Lock()
	defer c.saying.Unlock()
	s.said, c.speaker = lastBytes(s.said, data), s
}

// Line returns the newest line of the output in which something is to be seen, finished or not, as a person would read
// it: the one in which the cursor stands, or the next one above it.
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

package capture

import "bytes"

// said notes the newest output for Line. It is called before the beat, so that whoever hears of the beat
// finds it.
func (c *Capture) said(s *stream, data []byte) {
	c.saying.Lock()
	defer c.saying.Unlock()
	s.said, c.speaker = lastBytes(s.said, data), s
}

// Line returns the newest line of the output that is not empty, finished or not, as a person would read it.
func (c *Capture) Line() string {
	c.saying.Lock()
	defer c.saying.Unlock()
	if c.speaker == nil {
		return ""
	}
	for rest := c.speaker.said; len(rest) > 0; {
		start := bytes.LastIndexByte(rest, '\n') + 1
		if line := plain(bytes.TrimRight(rest[start:], "\r")); line != "" {
			return line
		}
		rest = rest[:max(start-1, 0)]
	}
	return ""
}

package capture

import (
	"time"
)

// A Mark is a place in the output: the end of what there was when [Capture.Prompt] returned it.
type Mark struct {
	stream *stream
	total  int64
}

// Prompt returns the line in which the cursor stands, up to the cursor, as a person would read it, without the
// output before answered. The prompt is "" if nothing stands before the cursor. since is the time of the last
// output, and end is the place where that output ends.
func (c *Capture) Prompt(answered Mark) (prompt string, since time.Time, end Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.newest
	if s == nil {
		return "", c.last, Mark{}
	}
	total := c.record.Total(s.id)
	tail, cut := s.tail, total > int64(len(s.tail))
	if s == answered.stream {
		tail = tail[len(tail)-int(min(total-answered.total, int64(len(tail)))):]
		cut = answered.total > 0
	}
	return short(shownLast(tail, cut, c.shown()).Line()), c.last, Mark{s, total}
}

// noteOutput notes the newest output for Line. It is called before the beat, so that a relay that delivers the
// beat finds the output.
func (c *Capture) noteOutput(s *stream, data []byte) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	s.newest, c.lineStream = lastBytes(s.newest, data), s
}

// Line returns the newest line of the output that is not blank, finished or not, as a person would read it: the line in
// which the cursor stands, or the next one above it. It returns "" if there is none.
func (c *Capture) Line() string {
	c.mu.Lock()
	config := c.shown()
	c.mu.Unlock()
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	if c.lineStream == nil {
		return ""
	}
	said := c.lineStream.newest
	return short(shownLast(said, len(said) >= maxTail, config).Newest())
}

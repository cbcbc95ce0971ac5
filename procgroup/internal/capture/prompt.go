package capture

import (
	"time"
)

// A Mark is a position in the output of a stream, from [Capture.Prompt]. The zero Mark is before all output.
type Mark struct {
	stream *stream
	total  int64 // bytes of the stream before the position
}

// Prompt returns the text between the start of the cursor's line and the cursor, on the screen that shows the stream of
// the newest output. Output of that stream before answered is left out, and a long text loses its beginning. since is
// the time of the last output, or Config.Begun before the first. end is the position after that output.
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

// noteOutput records the newest output for Line. pass calls it before Beat, so that a receiver of the heartbeat finds
// the output.
func (c *Capture) noteOutput(s *stream, data []byte) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	s.newest, c.lineStream = lastBytes(s.newest, data), s
}

// Line returns the newest line that is not blank, on the screen that shows the stream of the newest output: the line of
// the cursor, finished or not, or the nearest above it. A long line loses its beginning. Line returns "" if there is
// none.
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

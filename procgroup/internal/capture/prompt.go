package capture

import "time"

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
	since, config := c.last, c.shown()
	c.mu.Unlock()
	c.newestMu.Lock()
	defer c.newestMu.Unlock()
	s := c.newest
	if s == nil {
		return "", since, Mark{}
	}
	tail, cut := s.tail, s.total > int64(len(s.tail))
	if s == answered.stream {
		tail = tail[len(tail)-int(min(s.total-answered.total, int64(len(tail)))):]
		cut = answered.total > 0
	}
	return short(shownLast(tail, cut, config).Line()), since, Mark{s, s.total}
}

// noteOutput records the newest output for Prompt and Line. pass calls it before Beat, so that a receiver of the
// heartbeat finds the output.
func (c *Capture) noteOutput(s *stream, data []byte) {
	c.newestMu.Lock()
	defer c.newestMu.Unlock()
	s.tail, c.newest = lastBytes(s.tail, data), s
	s.total += int64(len(data))
}

// Line returns the newest line that is not blank, on the screen that shows the stream of the newest output: the line of
// the cursor, finished or not, or the nearest above it. A long line loses its beginning. Line returns "" if there is
// none.
func (c *Capture) Line() string {
	c.mu.Lock()
	config := c.shown()
	c.mu.Unlock()
	c.newestMu.Lock()
	defer c.newestMu.Unlock()
	s := c.newest
	if s == nil {
		return ""
	}
	return short(shownLast(s.tail, s.total > int64(len(s.tail)), config).Newest())
}

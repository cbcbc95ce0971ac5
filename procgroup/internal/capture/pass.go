package capture

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// pass passes on output, or the end of the stream, as received does.
func (c *Capture) pass(s *stream, buf *buffer, n int, sunk chan<- struct{}) (kept bool) {
	now := time.Now() // before the beat, so that LongestSilence is not shorter than an idle limit that fires
	var data []byte
	if n > 0 {
		data = buf[:n]
		c.noteOutput(s, data)
		c.config.Beat()
	}
	c.mu.Lock()
	if s.ended || c.closed {
		c.mu.Unlock()
		return false
	}
	if n > 0 {
		c.longest, c.last = max(c.longest, now.Sub(c.last)), now
		c.record.Add(s.id, data)
		s.tail, c.newest = lastBytes(s.tail, data), s
	} else {
		c.end(s)
	}
	job := sinkJob{buf: buf, n: n, done: sunk}
	if n > 0 && c.spill != nil {
		job.users = new(atomic.Int32)
		job.users.Store(1 + c.sinksOf(s)) // with this call
		c.spill.put(job)                  // with the lock, which keeps the order
	}
	exceeded := c.config.Limit > 0 && !c.over && c.record.Sum() > c.config.Limit
	c.over = c.over || exceeded
	c.mu.Unlock()
	if exceeded {
		c.config.Exceeded()
	}
	c.deliver(s, data, n == 0)
	if n > 0 && s.sink != nil {
		s.sink.put(job)
		kept = true
	}
	if job.users != nil {
		kept = job.users.Add(-1) > 0
	}
	return kept
}

// end records the end of a stream. The caller holds c.mu.
func (c *Capture) end(s *stream) {
	s.ended = true
	if c.open--; c.open == 0 {
		close(c.done)
	}
}

// deliver passes data and the end of a stream to the callback. If there is a single pipe, its end is
// that of both streams.
func (c *Capture) deliver(s *stream, data []byte, last bool) {
	if c.live == nil {
		return
	}
	c.live.add(s.id, data, last)
	if last && len(c.streams) == 1 {
		c.live.add(1, nil, true)
	}
}

// sinksOf returns how many sinks get the output of s.
func (c *Capture) sinksOf(s *stream) (n int32) {
	if s.sink != nil {
		n++
	}
	if c.spill != nil {
		n++
	}
	return n
}

// cut ends a stream, unless it has ended, after the output that Drain is passing on.
func (c *Capture) cut(s *stream) {
	s.passing.Lock()
	defer s.passing.Unlock()
	c.mu.Lock()
	over := s.ended || c.closed
	if !over {
		s.hungUp = true
		c.end(s)
	}
	c.mu.Unlock()
	if !over {
		c.deliver(s, nil, true)
	}
}

// failed records why a stream cannot be read any more.
func (c *Capture) failed(s *stream, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err == nil && !s.ended && !c.closing && !errors.Is(err, os.ErrClosed) {
		s.err = err
	}
}

package capture

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// pass passes the first n bytes of buf, or the end of the stream if n is 0, to Beat, the record, the sinks and the
// callback. After the end of the stream, or of the Capture, it drops them. The caller holds s.passing. sunk and the
// result are those of received.
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
	} else {
		c.end(s)
	}
	job := sinkJob{buf: buf, n: n, done: sunk}
	if n > 0 && c.spill != nil {
		job.users = new(atomic.Int32)
		job.users.Store(1 + c.sinksOf(s)) // 1 for this call, which reads buf below
		c.spill.put(job)                  // under c.mu, so that the two streams keep the order of the record
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
	if s.err == nil {
		c.oneLess()
	}
}

// oneLess records that one more stream has ended or failed. The caller holds c.mu.
func (c *Capture) oneLess() {
	if c.open--; c.open == 0 {
		close(c.done)
	}
}

// deliver passes data of s, and the end of s if last is true, to the callback, if there is one. The end of a single
// pipe is the end of both stdout and stderr.
func (c *Capture) deliver(s *stream, data []byte, last bool) {
	if c.live == nil {
		return
	}
	c.live.add(s.id, data, last)
	if last && len(c.streams) == 1 {
		c.live.add(1, nil, true)
	}
}

// sinksOf returns the number of sinks that get the output of s.
func (c *Capture) sinksOf(s *stream) (n int32) {
	if s.sink != nil {
		n++
	}
	if c.spill != nil {
		n++
	}
	return n
}

// cut ends a stream that hangUp is about to close. It waits until output that another goroutine has read is passed on,
// and passes on what the divider has held back. It does nothing if the stream or the Capture has ended.
func (c *Capture) cut(s *stream) {
	s.passing.Lock()
	defer s.passing.Unlock()
	c.giveBack(s)
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

// failed records err as the error of reading s, if it is the first, and counts s as no longer open. It ignores errors
// after the end of the stream, once the Capture closes its pipes, and of a pipe that is closed.
func (c *Capture) failed(s *stream, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err == nil && !s.ended && !c.closing && !errors.Is(err, os.ErrClosed) {
		s.err = err
		c.oneLess()
	}
}

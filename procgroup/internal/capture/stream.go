package capture

import (
	"errors"
	"os"
	"sync"
	"time"
)

// readSize is how much is read at a time, and pipeSize what the pipe of a command that
// writes faster than it is read is enlarged to. Together they make a flood about as
// fast as the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// A buffer is what is read at once.
type buffer [readSize]byte

// buffers are shared by all commands: one is taken when there is something to read, so
// that a command that waits has none.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// A taker gets what a pipe had: n bytes, or, with 0, the end. It reports whether it keeps
// buf, which otherwise goes back to the others; with the end buf may be nil.
type taker func(buf *buffer, n int) (kept bool)

// A stream is one of a command's output streams, on its way from the pipe to the ring,
// the writer and the callback.
//
// It is read by its collector, which waits for output and then for the writer, so that a
// slow writer slows the command down; and once the command has ended by Drain and Finish,
// which do neither. The pipe lets one of them at a time read and pass on what it got.
type stream struct {
	id   int
	pipe *pipe
	sink *sink         // nil: the caller has no writer
	sunk chan struct{} // gets one when the collector's chunk has been written

	// Guarded by Capture.mu.
	ring   ring
	ended  bool  // there is no more to read
	hungUp bool  // that is because it was closed here
	err    error // of reading

	large bool // the pipe has been enlarged as far as possible; the collector's
}

// collect reads until the stream ends or is closed.
func (c *Capture) collect(s *stream) {
	defer c.collectors.Done()
	var n int
	got := func(buf *buffer, m int) (kept bool) {
		n = m
		return c.got(s, buf, m, s.sunk)
	}
	for {
		if err := s.pipe.next(got); err != nil {
			c.failed(s, err)
			return
		}
		if n == 0 {
			return
		}
		if !s.large && n >= enlargeAt {
			s.large = true
			enlargePipe(s.pipe.r)
		}
		if s.sink == nil {
			continue
		}
		select {
		case <-s.sunk:
			if s.sink.refuses() {
				c.hangUp(s)
				return
			}
		case <-c.giveUp:
			return
		}
	}
}

// readRest reads what is there, without waiting for more, and reports whether that was the
// end. What was in the pipe when it began is then taken, but what somebody goes on to
// write may not be.
func (c *Capture) readRest(s *stream) (ended bool) {
	c.mu.Lock()
	ended, err := s.ended, s.err
	c.mu.Unlock()
	if ended || err != nil {
		return ended
	}
	err = s.pipe.rest(func(buf *buffer, n int) (kept bool) {
		ended = n == 0
		return c.got(s, buf, n, nil)
	})
	if err != nil {
		c.failed(s, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		return s.ended
	}
	return ended
}

// got passes on what was read: n bytes, or the end. The pipe is locked. sunk, unless it is
// nil, gets one when the writer has written it. It reports whether buf is still used.
func (c *Capture) got(s *stream, buf *buffer, n int, sunk chan<- struct{}) (kept bool) {
	now := time.Now() // before the beat: no idle limit fires after a shorter silence
	var data []byte
	if n > 0 {
		data = buf[:n]
		c.config.Beat()
	}
	c.mu.Lock()
	if s.ended || c.closed {
		c.mu.Unlock()
		return false
	}
	if n > 0 {
		c.longest, c.last = max(c.longest, now.Sub(c.last)), now
		s.ring.write(data)
		c.order.add(s.id, data)
	} else {
		c.end(s)
	}
	c.mu.Unlock()
	c.deliver(s, data, n == 0)
	if n > 0 && s.sink != nil {
		s.sink.put(sinkJob{buf, n, sunk})
		return true
	}
	return false
}

// end is the end of a stream. c.mu is held.
func (c *Capture) end(s *stream) {
	s.ended = true
	if c.open--; c.open == 0 {
		close(c.done)
	}
}

// deliver gives the callback what has come, and the end. One pipe is that of both streams.
func (c *Capture) deliver(s *stream, data []byte, last bool) {
	if c.live == nil {
		return
	}
	c.live.add(s.id, data, last)
	if last && len(c.streams) == 1 {
		c.live.add(1, nil, true)
	}
}

// hangUp closes a stream whose writer has failed. A command that writes on gets SIGPIPE, or
// an error, as under os/exec, and neither counts as alive nor works for nobody. It is for the
// collector, which does not read meanwhile: a read may not be interrupted everywhere.
func (c *Capture) hangUp(s *stream) {
	c.mu.Lock()
	over := s.ended || c.closed
	if !over {
		s.hungUp = true
		c.end(s)
	}
	c.mu.Unlock()
	s.pipe.r.Close()
	if !over {
		c.deliver(s, nil, true)
	}
}

// failed remembers why a stream cannot be read any more.
func (c *Capture) failed(s *stream, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err == nil && !s.ended && !c.closing && !errors.Is(err, os.ErrClosed) {
		s.err = err
	}
}

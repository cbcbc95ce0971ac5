package capture

import (
	"os"
	"sync"
	"sync/atomic"
)

// readSize is how much is read at a time, and pipeSize what the pipe of a command that
// writes faster than it is read is enlarged to. Together they make a flood about as
// fast as the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// buffers are shared by all commands: one is taken when there is something to read, so
// that a command that waits has none.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// A stream is read from the pipe to the rings, the sink and the callback.
type stream struct {
	r, w    *os.File
	ring    ring
	sink    *sink
	sunk    chan struct{}
	sinking atomic.Bool // waiting for the sink, not for the pipe
	ended   atomic.Bool // the pipe has no writer any more
	large   bool        // the pipe has been enlarged, as far as possible
}

// collect reads a stream until it ends or is closed.
func (c *Capture) collect(id int) {
	s := &c.streams[id]
	defer func() {
		if c.live != nil {
			c.live.add(id, nil, true)
		}
		if c.running.Add(-1) == 0 {
			close(c.done)
		}
	}()
	reader, err := newPipeReader(s.r)
	if err != nil {
		return
	}
	for {
		buf, n, err := reader.read()
		if n > 0 {
			c.config.Beat()
			if !s.large && n >= enlargeAt {
				s.large = true
				enlargePipe(s.r)
			}
			if !c.take(id, buf[:n]) {
				buf = nil
			}
		}
		if buf != nil {
			buffers.Put(buf)
		}
		if n == 0 {
			s.ended.Store(err == nil)
			return
		}
	}
}

// take hands p on. It reports whether p may be used again.
func (c *Capture) take(id int, p []byte) (free bool) {
	s := &c.streams[id]
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return true
	}
	s.ring.write(p)
	c.order.add(id, p)
	c.mu.Unlock()
	if c.live != nil {
		c.live.add(id, p, false)
	}
	if s.sink == nil {
		return true
	}
	s.sinking.Store(true)
	defer s.sinking.Store(false)
	if free = s.sink.put(p, s.sunk, c.giveUp); !free {
		s.sink = nil
	}
	return free
}

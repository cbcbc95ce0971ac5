package capture

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// readSize is how many bytes are read at a time. pipeSize is the capacity of a pipe that has been
// enlarged because the command writes faster than it is read. With these sizes a flood of output
// is about as fast as through the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// A buffer has the bytes of one read.
type buffer [readSize]byte

// buffers are shared by all commands. A buffer is taken when there is output, so that a command
// that prints nothing has none.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// A taker is called with the result of a read: n bytes, or 0 at the end of the stream. It reports
// whether it keeps buf, which otherwise returns to the pool. At the end buf may be nil.
type taker func(buf *buffer, n int) (kept bool)

// A stream is an output stream of a command. Its output goes from the pipe to the ring, the writer
// and the callback.
//
// The stream is read by its collector, which waits for output and then for the writer, so that
// a slow writer slows the command down. Once the command has ended, Drain and Finish also read
// it, without waiting. The pipe allows only one of them at a time to read and to pass the output
// on.
type stream struct {
	id   int
	pipe *pipe
	sink *sink         // nil if the caller has no writer
	sunk chan struct{} // gets a value when a sink has written the collector's chunk

	passing sync.Mutex // held while output is passed on; guards divider
	divider *divider   // nil unless stacks may come

	// Guarded by Capture.mu.
	head   []byte // the first bytes
	ring   ring   // of what follows them
	lines  int64  // number of line ends, if there is a head
	tail   []byte // the last bytes, whatever the ring keeps
	ended  bool   // no output follows
	hungUp bool   // it ended because hangUp closed it
	err    error  // of reading

	large bool // the pipe has been enlarged; used by the collector only

	said []byte // the last bytes; guarded by Capture.saying
}

// collect reads the stream until it ends or is closed.
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
			if s.pipe.r != nil {
				enlargePipe(s.pipe.r)
			}
		}
		for range c.sinksOf(s) {
			select {
			case <-s.sunk:
			case <-c.giveUp:
				return
			}
		}
		// After the wait: only then the sink has written the chunk, and knows the error of the writer.
		if s.sink != nil && s.sink.refuses() {
			c.hangUp(s)
			return
		}
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

// readRest reads the available output without waiting for more, and reports whether the stream has
// ended. It reads all output that was in the pipe when it was called; output that is written
// meanwhile may remain.
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

// got passes on the result of a read: n bytes, or the end of the stream. The pipe is locked. Unless
// sunk is nil, it gets a value when the writer has written the bytes. got reports whether buf is
// still in use.
func (c *Capture) got(s *stream, buf *buffer, n int, sunk chan<- struct{}) (kept bool) {
	s.passing.Lock()
	defer s.passing.Unlock()
	if s.divider != nil {
		c.divide(s, buf, n, sunk)
		return false
	}
	return c.pass(s, buf, n, sunk)
}

// pass passes on output, or the end of the stream, as got does.
func (c *Capture) pass(s *stream, buf *buffer, n int, sunk chan<- struct{}) (kept bool) {
	now := time.Now() // before the beat, so that LongestSilence is not shorter than an idle limit that fires
	var data []byte
	if n > 0 {
		data = buf[:n]
		c.said(s, data)
		c.config.Beat()
	}
	c.mu.Lock()
	if s.ended || c.closed {
		c.mu.Unlock()
		return false
	}
	if n > 0 {
		c.longest, c.last = max(c.longest, now.Sub(c.last)), now
		s.keep(data, c.config.Head)
		s.tail, c.newest = lastBytes(s.tail, data), s
		c.order.add(s.id, data)
	} else {
		c.end(s)
	}
	job := sinkJob{buf: buf, n: n, done: sunk}
	if n > 0 && c.spill != nil {
		job.users = new(atomic.Int32)
		job.users.Store(1 + c.sinksOf(s)) // with this call
		c.spill.put(job)                  // with the lock, which keeps the order
	}
	exceeded := c.config.Limit > 0 && !c.over && c.order.total > c.config.Limit
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

// keep appends data to the head, until the head has most bytes, and writes the rest to the ring.
func (s *stream) keep(data []byte, most int) {
	if most > 0 { // counting takes a tenth of the time in which a flood is read
		s.lines += countLines(data)
	}
	if n := min(most-len(s.head), len(data)); n > 0 {
		s.head = append(s.head, data[:n]...)
		data = data[n:]
	}
	s.ring.write(data)
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

// hangUp closes a stream whose writer has failed. A command that keeps writing gets SIGPIPE or an
// error, as with os/exec, instead of working for nothing and renewing its idle limit. The
// collector calls hangUp, because no read may be in progress: some systems cannot interrupt it.
func (c *Capture) hangUp(s *stream) {
	c.cut(s)
	s.pipe.close()
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

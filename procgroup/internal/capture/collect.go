package capture

// collect reads the stream and passes its output on until the stream ends or is closed, a read fails, or the caller's
// writer fails. It also returns when c.giveUp is closed while it waits for a sink.
func (c *Capture) collect(s *stream) {
	defer c.collectors.Done()
	var n int
	got := func(buf *buffer, m int) (kept bool) {
		n = m
		return c.received(s, buf, m, s.written)
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
			select { // when giveUp is closed, the pipe is read and closed, so nothing is lost
			case <-s.written:
			case <-c.giveUp:
				return
			}
		}
		// After the wait, because the sink learns of an error of the writer only when it writes the chunk.
		if s.sink != nil && s.sink.refuses() {
			c.hangUp(s)
			return
		}
	}
}

// readRest reads the available output without waiting for more, and reports whether the stream has ended or failed. It
// reads all output that was in the pipe when it was called; output that is written meanwhile may remain. After an error
// of reading it reads nothing.
func (c *Capture) readRest(s *stream) (over bool) {
	if c.isOver(s) {
		return true
	}
	err := s.pipe.rest(func(buf *buffer, n int) (kept bool) {
		return c.received(s, buf, n, nil)
	})
	if err != nil {
		c.failed(s, err)
	}
	return c.isOver(s)
}

// isOver reports whether a stream has ended or failed.
func (c *Capture) isOver(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.ended || s.err != nil
}

// received passes on the result of a read: the first n bytes of buf or, if n is 0, the end of the stream. The caller
// holds the lock of the pipe. If sunk is not nil, each sink of the stream sends a value on it after it has handled the
// bytes. received reports whether buf is still in use.
func (c *Capture) received(s *stream, buf *buffer, n int, sunk chan<- struct{}) (kept bool) {
	s.passing.Lock()
	defer s.passing.Unlock()
	if s.divider != nil {
		c.divide(s, buf, n, sunk)
		return false
	}
	return c.pass(s, buf, n, sunk)
}

// hangUp closes a stream whose writer has failed. A command that keeps writing gets SIGPIPE or an error, as with
// os/exec, instead of working for nothing and renewing its idle limit. Only the collector calls hangUp, between two of
// its reads, because some systems cannot interrupt a read.
func (c *Capture) hangUp(s *stream) {
	c.cut(s)
	s.pipe.close()
}

// rest reads the available output of all streams, and reports whether all of them have ended or failed.
func (c *Capture) rest() (over bool) {
	over = true
	for i := range c.streams {
		over = c.readRest(&c.streams[i]) && over
	}
	return over
}

package capture

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// errSlow is why a writer did not get all output.
var errSlow = errors.New("it did not take all output in time")

// A sink writes output to a writer of the caller's, which may block for ever. So that
// happens on a goroutine of its own; who waits for it can give up.
//
// What waits to be written is bounded by who puts it there: the collector of a stream
// has one chunk here at a time, and what rest adds is about as much as the pipe held.
type sink struct {
	name string // for errors
	w    io.Writer
	fail func(error) // see Guard
	done chan struct{}

	mu        sync.Mutex
	changed   sync.Cond // of queue and ending
	queue     []sinkJob
	ending    bool  // no more will come
	unwritten int64 // what w did not get
	err       error // after the first one nothing is written any more
	panicked  bool  // err is of that, or of Goexit
	over      bool  // nobody asks any more
}

// A sinkJob is a chunk to be written.
type sinkJob struct {
	buf  *buffer
	n    int
	done chan<- struct{} // unless it is nil, gets one afterwards; has room for it
}

func newSink(name string, w io.Writer, fail func(error)) *sink {
	s := &sink{name: name, w: w, fail: fail, done: make(chan struct{})}
	s.changed.L = &s.mu
	go s.run()
	return s
}

// put queues j.
func (s *sink) put(j sinkJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, j)
	s.changed.Signal()
}

// end says that no more will come. done is closed when everything has been written, or
// never will be.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.changed.Signal()
}

// refuses reports whether the writer has returned an error. Not that it has panicked: that
// aborts the command, which must not end by SIGPIPE before.
func (s *sink) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil && !s.panicked
}

// finish says, after end, what the writer did not get and why. It then gets no more.
func (s *sink) finish() (unwritten int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, j := range s.queue {
		s.unwritten += int64(j.n)
	}
	if s.unwritten > 0 && s.err == nil {
		s.err = s.wrap(errSlow)
	}
	return s.unwritten, s.err
}

func (s *sink) wrap(err error) error {
	return fmt.Errorf("procgroup: writing to %s: %w", s.name, err)
}

func (s *sink) run() {
	replaced := false
	defer func() {
		if !replaced {
			close(s.done)
		}
	}()
	for {
		j, ok := s.next()
		if !ok {
			return
		}
		Guard(func() { s.write(j) }, func(err error) {
			s.mu.Lock()
			s.panicked = true
			s.mu.Unlock()
			s.written(j, 0, err) // first: once the call has failed, nobody waits for why
			s.fail(err)
			if err == timeout.ErrGoexit {
				replaced = true
				go s.run() // in place of this goroutine, whose end cannot be stopped; it takes the next one
			}
		})
	}
}

// next waits for the first of the queue, which stays there until it has been written.
func (s *sink) next() (j sinkJob, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.ending {
		s.changed.Wait()
	}
	if s.over {
		s.queue = nil
	}
	if len(s.queue) == 0 {
		return j, false
	}
	return s.queue[0], true
}

// write writes a chunk, unless there was an error before.
func (s *sink) write(j sinkJob) {
	s.mu.Lock()
	failed := s.err != nil
	s.mu.Unlock()
	if failed {
		s.written(j, 0, nil)
		return
	}
	n, err := s.w.Write(j.buf[:j.n])
	if err == nil && n != j.n {
		err = io.ErrShortWrite
	}
	s.written(j, n, err)
}

// written takes a chunk from the queue of which only n bytes were written. Of the errors the first
// counts. All at once: what is in the queue is counted as unwritten when nobody waits any more.
func (s *sink) written(j sinkJob, n int, err error) {
	s.mu.Lock()
	s.unwritten += int64(j.n - min(max(n, 0), j.n))
	if err != nil && s.err == nil {
		s.err = s.wrap(err)
	}
	s.queue[0] = sinkJob{}
	s.queue = s.queue[1:]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	s.mu.Unlock()
	buffers.Put(j.buf)
	if j.done != nil {
		j.done <- struct{}{}
	}
}

package capture

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/internal/ready"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// errSlow is the error of a writer that did not accept all output in time.
var errSlow = errors.New("not all output was accepted in time")

// A sink writes output to a writer of the caller, on a separate goroutine, because the writer may
// block forever.
//
// The length of the queue is bounded by its producers: the collector of a stream has at most one
// chunk in it, and rest adds about as much as the pipe held.
type sink struct {
	name string // for errors
	w    io.Writer
	fail func(error) // see Guard
	done chan struct{}
	stop ready.Stop // of a wait for w, if that is a file that does not block

	mu        sync.Mutex
	changed   sync.Cond // signalled when queue or ending changes
	queue     []sinkJob
	ending    bool  // no more chunks will be added
	unwritten int64 // number of bytes that w did not get
	err       error // the first error; nothing is written after it
	panicked  bool  // err is from a panic or Goexit
	over      bool  // finish has returned
}

// A sinkJob is a chunk to be written.
type sinkJob struct {
	buf   *buffer
	n     int
	wrote int             // of these
	users *atomic.Int32   // unless it is nil, number of sinks that still have buf
	done  chan<- struct{} // unless it is nil, gets a value when the chunk has been handled; must be buffered
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

// end declares that no more chunks will be added. done is closed when all chunks have been handled.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.changed.Signal()
}

// refuses reports whether the writer has returned an error. It is false after a panic: a panic aborts
// the command, which must not end by SIGPIPE before that.
func (s *sink) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil && !s.panicked
}

// finish returns the number of bytes that the writer did not get, and the reason. Call it after end.
// Nothing is written afterwards, except by a call in progress.
func (s *sink) finish() (unwritten int64, err error) {
	s.stop.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, j := range s.queue {
		s.unwritten += int64(j.n - j.wrote)
	}
	if s.unwritten > 0 && s.err == nil {
		s.err = s.wrap(errSlow)
	}
	return s.unwritten, s.err
}

func (s *sink) wrap(err error) error { return texts.Wrap("procgroup: writing to "+s.name, err) }

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
			s.written(j, err) // before fail: once the call has failed, nothing waits for the error
			s.fail(err)
			if err == timeout.ErrGoexit {
				replaced = true
				go s.run() // replaces this goroutine, whose end cannot be prevented
			}
		})
	}
}

// next waits for the first chunk of the queue, which remains there until it has been written. It reports false when
// the queue is empty and no chunk will follow.
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

// write writes a chunk, unless a previous write has failed.
func (s *sink) write(j sinkJob) {
	s.mu.Lock()
	failed := s.err != nil
	s.mu.Unlock()
	if failed {
		s.written(j, nil)
		return
	}
	n, err := ready.Write(s.w, j.buf[:j.n], &s.stop, s.wrote)
	switch {
	case err == nil && n != j.n:
		err = io.ErrShortWrite
	case ready.Again(err) && s.stop.Stopped():
		err = errSlow
	case ready.Again(err):
		err = &hiddenFileError{err}
	}
	s.written(j, err)
}

// A hiddenFileError is the error of a writer that writes to a file which another process has made non-blocking, and
// does not show that file.
type hiddenFileError struct{ err error }

func (e *hiddenFileError) Error() string {
	return e.err.Error() + " (another process has made the file non-blocking; package stdio waits for such files)"
}

func (e *hiddenFileError) Unwrap() error { return e.err }

// wrote counts what has been written of the first chunk.
func (s *sink) wrote(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue[0].wrote += n
}

// written removes the first chunk from the queue, and keeps the first error. It does so under one lock, because
// finish counts the chunks in the queue as unwritten.
func (s *sink) written(j sinkJob, err error) {
	s.mu.Lock()
	s.unwritten += int64(j.n - s.queue[0].wrote)
	if err != nil && s.err == nil {
		s.err = s.wrap(err)
	}
	s.queue[0] = sinkJob{}
	s.queue = s.queue[1:]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	s.mu.Unlock()
	if j.users == nil || j.users.Add(-1) == 0 {
		buffers.Put(j.buf)
	}
	if j.done != nil {
		j.done <- struct{}{}
	}
}

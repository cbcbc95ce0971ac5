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

// A sink writes output to a writer of the caller, on a separate goroutine, because the writer may block forever.
//
// The queue is short although it has no limit: the collector of a stream adds a chunk only after its previous one has
// been handled, and rest adds about as much as the pipe held.
type sink struct {
	name string // for errors
	w    io.Writer
	fail func(error)   // Config.Fail
	done chan struct{} // closed when all chunks have been handled after end
	stop ready.Stop    // ends a wait until w, a non-blocking file, accepts more

	mu        sync.Mutex
	changed   sync.Cond // signalled when queue or ending changes
	queue     []sinkJob // the first one is being written
	ending    bool      // no more chunks will be added
	unwritten int64     // number of bytes that w did not get
	err       error     // the first error; nothing is written after it
	panicked  bool      // err is from a panic or Goexit
	over      bool      // finish was called
}

// A sinkJob is a chunk to be written: the first n bytes of buf.
type sinkJob struct {
	buf   *buffer
	n     int
	wrote int             // number of bytes already written
	users *atomic.Int32   // number of users of buf, a call of pass included; nil if the sink is the only one
	done  chan<- struct{} // receives a value when the chunk has been handled; buffered; may be nil
}

func newSink(name string, w io.Writer, fail func(error)) *sink {
	s := &sink{name: name, w: w, fail: fail, done: make(chan struct{})}
	s.changed.L = &s.mu
	go s.run()
	return s
}

// put appends j to the queue. It does not wait.
func (s *sink) put(j sinkJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, j)
	s.changed.Signal()
}

// end declares that no more chunks will be added. s.done is closed once all chunks have been handled.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.changed.Signal()
}

// refuses reports whether the writer has returned an error. It returns false after a panic or Goexit, which aborts the
// command: if the stream were closed, SIGPIPE might end the command first.
func (s *sink) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil && !s.panicked
}

// finish returns the number of bytes that the writer did not get, and the first error. If bytes are left without an
// error, the error matches errSlow. Call finish after end. It does not wait: a write in progress goes on, and no other
// follows.
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
			s.written(j, err) // before fail: once it has aborted the command, nothing waits until err is recorded
			s.fail(err)
			if err == timeout.ErrGoexit {
				replaced = true
				go s.run() // replaces this goroutine, which Goexit ends
			}
		})
	}
}

// next waits until the queue has a chunk or end was called. It returns the first chunk, which stays in the queue until
// written removes it. ok is false if no chunk is left and none will follow. After finish, next drops the queue.
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

// write writes j and removes it from the queue. If an earlier write has failed, it only removes j.
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

// A hiddenFileError is the EAGAIN of a writer that is not itself a file: another process has made the file behind it
// non-blocking. The sink cannot wait until such a file accepts more, because it does not know the file.
type hiddenFileError struct{ err error }

func (e *hiddenFileError) Error() string {
	return e.err.Error() + " (another process has made the file non-blocking; package stdio waits for such files)"
}

func (e *hiddenFileError) Unwrap() error { return e.err }

// wrote adds n to the number of bytes written of the first chunk.
func (s *sink) wrote(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue[0].wrote += n
}

// written removes j, the first chunk, from the queue, counts the bytes of it that w did not get, and records err if it
// is the first error. It does all this under one lock, because finish counts the chunks in the queue as unwritten. Then
// it gives up the buffer and sends on j.done.
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

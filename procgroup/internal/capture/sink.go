package capture

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// errSlowSink is why a writer did not get all output.
var errSlowSink = errors.New("it did not take all output in time")

// A sink writes output to a writer of the caller's, which may block for ever. So that
// happens on a goroutine of its own; who waits for it can give up.
type sink struct {
	name string // for errors
	w    io.Writer
	fail func(error) // see guard
	jobs chan sinkJob
	quit chan struct{}

	mu  sync.Mutex
	err error
}

type sinkJob struct {
	data []byte
	done chan<- struct{} // has room for one
}

func newSink(name string, w io.Writer, fail func(error)) *sink {
	s := &sink{name: name, w: w, fail: fail, jobs: make(chan sinkJob), quit: make(chan struct{})}
	go s.run()
	return s
}

func (s *sink) run() {
	for {
		select {
		case j := <-s.jobs:
			s.write(j)
		case <-s.quit:
			return
		}
	}
}

func (s *sink) write(j sinkJob) {
	defer func() { j.done <- struct{}{} }()
	if s.failure() != nil {
		return
	}
	guard(func() {
		n, err := s.w.Write(j.data)
		if err == nil && n != len(j.data) {
			err = io.ErrShortWrite
		}
		if err != nil {
			s.setFailure(err)
		}
	}, func(err error) {
		s.fail(err)
		s.setFailure(err)
		if err == timeout.ErrGoexit {
			go s.run() // in place of this goroutine, whose end cannot be stopped
		}
	})
}

func (s *sink) setFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("procgroup: writing to %s: %w", s.name, err)
	}
}

// failure is the first error. After it nothing is written any more.
func (s *sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// put writes p and waits for that, until giveUp is closed. When it gives up, p may
// still be read for as long as the writer likes.
func (s *sink) put(p []byte, done chan struct{}, giveUp <-chan struct{}) (ok bool) {
	if s.failure() != nil {
		return true
	}
	select {
	case s.jobs <- sinkJob{p, done}:
	case <-giveUp:
		s.setFailure(errSlowSink)
		return true // it never got p
	}
	select {
	case <-done:
		return true
	case <-giveUp:
		s.setFailure(errSlowSink)
		return false
	}
}

// close ends the goroutine, at once or when the writer returns.
func (s *sink) close() { close(s.quit) }

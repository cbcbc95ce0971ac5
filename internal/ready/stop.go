package ready

import "sync"

// A Stop ends waits. The zero value is ready to use. A nil *Stop ends none.
type Stop struct {
	mu      sync.Mutex
	stopped bool
	waits   int   // in progress
	alarm   alarm // open while there are waits
}

// Now ends the waits in progress and those to come. It may be called more than once.
func (s *Stop) Now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		s.alarm.ring()
	}
}

// Stopped reports whether Now has been called.
func (s *Stop) Stopped() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

func (s *Stop) begin() (ok bool) {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	if s.waits == 0 {
		s.alarm.open()
	}
	s.waits++
	return true
}

func (s *Stop) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits--; s.waits == 0 {
		s.alarm.close()
	}
}

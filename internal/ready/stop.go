package ready

import "sync"

// A Stop ends the waits of the calls of Read and Write to which it is passed. The zero Stop is ready to use. A nil
// *Stop ends none.
type Stop struct {
	mu      sync.Mutex
	stopped bool
	waits   int   // number of waits in progress
	alarm   alarm // open while there are waits
}

// Now ends the waits in progress, and makes later ones end at once. It may be called more than once.
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

// begin begins a wait, which end must end. It returns false, and begins none, after Now.
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

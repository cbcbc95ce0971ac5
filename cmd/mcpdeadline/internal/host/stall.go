package host

import (
	"sync"
	"time"
)

// A Stall tracks whether a message of the host waits for a server that does not read. Meanwhile the proxy reads nothing
// else that the host has sent, and so does not reach the end of stdin.
type Stall struct {
	hostGone func() bool
	end      func()

	mu    sync.Mutex
	timer *time.Timer
	since time.Time // zero if no message waits
}

// NewStall returns a Stall, which calls end once a message has waited for UnreadLimit and the host has gone. hostGone
// reports whether the host has closed stdin, and is nil if that is not known.
func NewStall(hostGone func() bool, end func()) *Stall { return &Stall{hostGone: hostGone, end: end} }

// Wait records that a message begins to wait.
func (s *Stall) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.since = time.Now(); {
	case s.hostGone == nil:
	case s.timer == nil:
		s.timer = time.AfterFunc(UnreadLimit, s.look)
	default:
		s.timer.Reset(UnreadLimit)
	}
}

// Read records that the message has been passed on.
func (s *Stall) Read() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since = (time.Time{}); s.timer != nil {
		s.timer.Stop()
	}
}

func (s *Stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.since.IsZero() || time.Since(s.since) < UnreadLimit: // it has just been read
	case s.hostGone():
		s.end()
	default:
		s.timer.Reset(time.Second)
	}
}

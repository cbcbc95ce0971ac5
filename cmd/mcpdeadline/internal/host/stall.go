package host

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Limits on the time for which the proxy waits for a host that may have ended.
const (
	ReadLimit   = time.Second            // for the host to read the last messages of the proxy
	RefuseLimit = 2 * time.Second        // for the first request, whose answer says why the server cannot be started
	UnreadLimit = toolcall.ShutdownLimit // for a server to read a message of the host, before the end of stdin counts
)

// A Stall detects that the host has closed stdin while a message of the host waits for a server that does not read. The
// proxy reads stdin no further meanwhile, so it does not reach the end of stdin.
type Stall struct {
	hostGone func() bool
	end      func()

	mu    sync.Mutex
	timer *time.Timer
	since time.Time // zero if no message waits
}

// NewStall returns a Stall that calls end, at most once per message, when the message has waited for UnreadLimit and
// hostGone reports that the host has closed stdin. It calls hostGone at that time and then every second. Both functions
// are called on another goroutine, and Wait and Read wait for them, so they must not call these. If hostGone is nil,
// end is never called.
func NewStall(hostGone func() bool, end func()) *Stall { return &Stall{hostGone: hostGone, end: end} }

// Wait records that a message begins to wait for the server.
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

// Read records that the message no longer waits. After it has returned, end is not called for that message.
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
	case s.since.IsZero() || time.Since(s.since) < UnreadLimit: // Read was called while the timer fired
	case s.hostGone():
		s.end()
	default:
		s.timer.Reset(time.Second)
	}
}

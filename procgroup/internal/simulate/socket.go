//go:build unix

package simulate

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// A socket carries datagrams from the processes to the program. Its queue is unbounded, so no sender blocks.
type socket struct {
	m *Machine

	// Guarded by m.mu.
	queue   []string
	stopped bool // Stop was called: Receive does not wait any more
	closed  bool // Close was called: datagrams are dropped
	changed broadcast
}

// A Heard is a datagram that the program has read at the time At.
type Heard struct {
	At   time.Time
	Text string
}

// Socket makes the socket of the command that is started next. It replaces an earlier socket.
func (m *Machine) Socket() sdnotify.Socket {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.socket = &socket{m: m}
	return m.socket
}

// say sends a datagram to the socket, if there is an open one. The caller holds m.mu.
func (m *Machine) say(text string) {
	s := m.socket
	if s == nil || s.closed {
		return
	}
	m.Said++
	s.queue = append(s.queue, text)
	s.changed.send()
}

func (s *socket) Addr() string { return "/simulated/notify" }

func (s *socket) Receive(b []byte) (n int, mine bool, err error) {
	for {
		s.m.mu.Lock()
		if len(s.queue) > 0 {
			text := s.queue[0]
			s.queue = s.queue[1:]
			s.m.Heard = append(s.m.Heard, Heard{time.Now(), text})
			s.m.mu.Unlock()
			copy(b, text)
			return len(text), true, nil
		}
		stopped, changed := s.stopped, s.changed.next()
		s.m.mu.Unlock()
		if stopped {
			return 0, false, os.ErrClosed
		}
		<-changed
	}
}

func (s *socket) Stop() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.stopped = true
	s.changed.send()
}

func (s *socket) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.closed {
		s.m.violation("the socket is closed twice")
	}
	s.closed = true
	return nil
}

package main

import (
	"bytes"
	"encoding/json"
)

// unsend removes a request that still waits for a server. It reports whether there was one.
func (s *session) unsend(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.waiting {
		if m.isRequest() && bytes.Equal(m.ID, id) {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// toServer sends a message to the server, or keeps it until a server is ready.
func (s *session) toServer(m *message) {
	s.mu.Lock()
	s.queue(m)
}

// queue is toServer for a caller that holds s.mu. It unlocks s.mu.
func (s *session) queue(m *message) {
	s.remember(m)
	up := s.up
	switch {
	case s.over, s.sleepsOn(m):
		up = nil
	case !s.ready, m.isRequest() && s.doubt != nil && s.kills(s.doubt.up):
		s.waiting = append(s.waiting, m)
		if s.rouse(m.Method); m.isRequest() {
			s.hurry()
		}
		up = nil
	}
	if !m.isRequest() || needsServer(m.Method) {
		s.use()
	}
	s.release(up, m)
}

// release unlocks s.mu, and then sends a message to up, unless that is nil. The run does not fall asleep in
// between.
func (s *session) release(up upstream, m *message) {
	if up == nil {
		s.mu.Unlock()
		return
	}
	s.sending++
	s.mu.Unlock()
	up.send(m)
	s.mu.Lock()
	s.sending--
	s.mu.Unlock()
}

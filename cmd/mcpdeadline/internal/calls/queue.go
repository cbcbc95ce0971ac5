package calls

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A held is the messages that wait for a server. It is guarded by the session's lock.
type held struct {
	messages []*jsonrpc.Message
	size     int       // bytes
	room     sync.Cond // there are fewer, or the session has ended
}

func (h *held) add(m *jsonrpc.Message) {
	h.messages = append(h.messages, m)
	h.size += len(m.Raw)
}

// take removes all messages, and returns them.
func (h *held) take() (all []*jsonrpc.Message) {
	all = h.messages
	h.messages, h.size = nil, 0
	h.room.Broadcast()
	return all
}

// remove removes the messages that are chosen. It reports whether there were any.
func (h *held) remove(chosen func(*jsonrpc.Message) bool) bool {
	before := len(h.messages)
	h.messages = slices.DeleteFunc(h.messages, func(m *jsonrpc.Message) bool {
		if !chosen(m) {
			return false
		}
		h.size -= len(m.Raw)
		return true
	})
	h.room.Broadcast()
	return len(h.messages) < before
}

// awaitServer waits until the server has read most of what is queued for it, and until little waits for the next one.
// It is called where no lock is held and no call waits.
func (s *Session) awaitServer() {
	s.mu.Lock()
	for s.waiting.size > jsonrpc.QueueOf(s.Max) && !s.over {
		s.waiting.room.Wait()
	}
	up := s.up
	s.mu.Unlock()
	if up != nil {
		up.Await()
	}
}

// unsend removes a request that still waits for a server. It reports whether there was one.
func (s *Session) unsend(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.remove(func(m *jsonrpc.Message) bool { return m.IsRequest() && bytes.Equal(m.ID, id) })
}

// toServer sends a message to the server, or keeps it until a server is ready.
func (s *Session) toServer(m *jsonrpc.Message) {
	s.mu.Lock()
	s.queue(m)
}

// queue is toServer for a caller that holds s.mu. It unlocks s.mu.
func (s *Session) queue(m *jsonrpc.Message) {
	s.remember(m)
	up := s.up
	switch {
	case s.over:
		up = nil
	case !s.ready, m.IsRequest() && s.doubt != nil && s.kills(s.doubt.up):
		s.waiting.add(m)
		if m.IsRequest() {
			s.hurry()
		}
		up = nil
	}
	s.mu.Unlock()
	if up != nil {
		s.pass(up, m)
	}
}

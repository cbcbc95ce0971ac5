package calls

import (
	"encoding/json"
	"sync"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// batches are arrays of messages, which hosts of protocol 2025-03-26 may send. Each message is passed on by itself, so
// that each request has its limit, and the answers are collected: the host expects one array of them.
type batches struct {
	mu   sync.Mutex
	open map[string]*batch // by the ids of the requests that have no answer
}

type batch struct {
	waits   int
	answers []json.RawMessage
}

// takeBatch passes on the messages of a batch of the host with pass.
func (s *Session) takeBatch(items []json.RawMessage, pass func(*jsonrpc.Message)) {
	if len(items) == 0 {
		s.send(jsonrpc.NoMessage())
		return
	}
	b := &batch{waits: 1} // for this function, so that no answer is sent before all have been taken
	for _, item := range items {
		m := jsonrpc.Parse(item)
		switch {
		case len(item) == 0 || item[0] != '{' || !m.IsRequest() && !m.IsNotification() && !m.IsResponse():
			s.batches.mu.Lock()
			b.answers = append(b.answers, jsonrpc.NoMessage().Raw)
			s.batches.mu.Unlock()
			continue
		case m.IsRequest():
			s.batches.mu.Lock()
			if _, open := jsonrpc.Find(s.batches.open, string(m.ID)); open == nil {
				s.batches.open[string(m.ID)] = b
				b.waits++
			}
			s.batches.mu.Unlock()
		}
		pass(m)
	}
	s.answered(b, nil)
}

// gather sends a message to the host, or keeps it until the other answers to its batch have come.
func (s *Session) gather(m *jsonrpc.Message) {
	if m.IsResponse() {
		if b := s.leaveBatch(string(m.ID)); b != nil {
			s.answered(b, m.Raw)
			return
		}
	}
	s.send(m)
}

// leaveBatch returns the batch of a request that is answered, or will not be, or nil if there is none.
func (s *Session) leaveBatch(id string) *batch {
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	if len(s.batches.open) == 0 {
		return nil
	}
	key, b := jsonrpc.Find(s.batches.open, id)
	delete(s.batches.open, key)
	return b
}

// answered takes the answer to one of what a batch waits for, nil where there is none.
func (s *Session) answered(b *batch, answer json.RawMessage) {
	s.batches.mu.Lock()
	if answer != nil {
		b.answers = append(b.answers, answer)
	}
	b.waits--
	whole := b.waits == 0 && len(b.answers) > 0
	s.batches.mu.Unlock()
	if whole {
		s.send(jsonrpc.New(b.answers))
	}
}

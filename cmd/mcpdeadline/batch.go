package main

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
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

// items returns the messages of a batch, or nil if m is none.
func (m *message) items() (items []json.RawMessage) {
	if m.Method != "" || m.ID != nil || !bytes.HasPrefix(bytes.TrimSpace(m.raw), []byte{'['}) {
		return nil
	}
	_ = adapter.Unmarshal(m.raw, &items)
	return items
}

// takeBatch passes on the messages of a batch of the host with pass.
func (s *session) takeBatch(items []json.RawMessage, pass func(*message)) {
	if len(items) == 0 {
		s.send(noMessage())
		return
	}
	b := &batch{waits: 1} // for this function, so that no answer is sent before all have been taken
	for _, item := range items {
		m := readMessage(item)
		switch {
		case len(item) == 0 || item[0] != '{' || !m.isRequest() && !m.isNotification() && !m.isResponse():
			s.batches.mu.Lock()
			b.answers = append(b.answers, noMessage().raw)
			s.batches.mu.Unlock()
			continue
		case m.isRequest():
			s.batches.mu.Lock()
			if _, open := find(s.batches.open, string(m.ID)); open == nil {
				s.batches.open[string(m.ID)] = b
				b.waits++
			}
			s.batches.mu.Unlock()
		}
		pass(m)
	}
	s.settle(b, nil)
}

// noMessage answers what is no message.
func noMessage() *message {
	return newMessage(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": invalidRequest, "message": "no message"}})
}

// gather sends a message to the host, or keeps it until the other answers to its batch have come.
func (s *session) gather(m *message) {
	if m.isResponse() {
		if b := s.leaveBatch(string(m.ID)); b != nil {
			s.settle(b, m.raw)
			return
		}
	}
	s.send(m)
}

// leaveBatch returns the batch of a request that is answered, or will not be, or nil if there is none.
func (s *session) leaveBatch(id string) *batch {
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	if len(s.batches.open) == 0 {
		return nil
	}
	key, b := find(s.batches.open, id)
	delete(s.batches.open, key)
	return b
}

// settle takes the answer to one of what a batch waits for, nil where there is none.
func (s *session) settle(b *batch, answer json.RawMessage) {
	s.batches.mu.Lock()
	if answer != nil {
		b.answers = append(b.answers, answer)
	}
	b.waits--
	whole := b.waits == 0 && len(b.answers) > 0
	s.batches.mu.Unlock()
	if whole {
		s.send(newMessage(b.answers))
	}
}

package calls

import (
	"slices"
	"sync"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A held is a queue of messages that wait for a run of the server. It is guarded by the mu of the session.
type held struct {
	messages []*jsonrpc.Message
	size     int       // bytes
	room     sync.Cond // signalled when size has decreased or the session has ended
}

func (h *held) add(m *jsonrpc.Message) {
	h.messages = append(h.messages, m)
	h.size += len(m.Raw)
}

// take removes and returns all messages.
func (h *held) take() (all []*jsonrpc.Message) {
	all = h.messages
	h.messages, h.size = nil, 0
	h.room.Broadcast()
	return all
}

// remove removes the messages for which chosen returns true, and reports whether it has removed any.
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

package main

import "sync"

// Bounds of what waits for HTTP clients that do not read, in bytes.
const (
	maxUnsent  = 1 << 20 // on a stream of notifications, or while there is none: what comes then is dropped
	maxAnswers = 4 << 20 // on the responses of one session, before its server has to wait
)

// A mailbox queues the messages of one HTTP response. It never waits for the client.
type mailbox struct {
	more chan struct{} // has a value when there may be messages

	mu    sync.Mutex
	queue []*message
	size  int // bytes
	gone  bool
}

func newMailbox() *mailbox { return &mailbox{more: make(chan struct{}, 1)} }

// put queues a message unless more than most bytes wait, or the client has gone. Most is 0 for a message that has
// to arrive.
func (b *mailbox) put(m *message, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone || most > 0 && b.size+len(m.raw) > most && b.size > 0 {
		return false
	}
	b.queue = append(b.queue, m)
	b.size += len(m.raw)
	select {
	case b.more <- struct{}{}:
	default:
	}
	return true
}

// next returns the oldest message, or nil if there is none.
func (b *mailbox) next() *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	m := b.queue[0]
	if b.queue, b.size = b.queue[1:], b.size-len(m.raw); len(b.queue) > 0 {
		select {
		case b.more <- struct{}{}:
		default:
		}
	}
	return m
}

// bytes returns how much waits.
func (b *mailbox) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// close drops what waits and what comes.
func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone, b.queue, b.size = true, nil, 0
}

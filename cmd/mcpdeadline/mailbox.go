package main

import "sync"

// Bounds of what waits for HTTP clients that do not read, in bytes.
const (
	maxUnsent  = 1 << 20 // on a stream of notifications, or while there is none: what comes then is dropped
	maxAnswers = 4 << 20 // on the responses of one session, before its server has to wait
)

// A mailbox queues the messages of one HTTP response, or those for a server over HTTP. To put one in never waits.
type mailbox struct {
	more chan struct{} // has a value when there may be messages

	mu    sync.Mutex
	queue []*message
	size  int // bytes
	gone  bool
	room  chan struct{} // closed when the queue has become shorter; nil if nobody waits for that
}

func newMailbox() *mailbox { return &mailbox{more: make(chan struct{}, 1)} }

// put queues a message unless more than most bytes wait, or the box is closed. Most is 0 for a message that has
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
	b.shorter()
	m := b.queue[0]
	b.queue[0] = nil
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

// await waits until no more than most bytes wait, or until close.
func (b *mailbox) await(most int) {
	for {
		b.mu.Lock()
		if b.size <= most || b.gone {
			b.mu.Unlock()
			return
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		<-room
	}
}

// shorter wakes those who await room. The caller holds b.mu.
func (b *mailbox) shorter() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// close drops what comes, and what waits, which it returns.
func (b *mailbox) close() (left []*message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shorter()
	left = b.queue
	b.gone, b.queue, b.size = true, nil, 0
	return left
}

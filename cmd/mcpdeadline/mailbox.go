package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what waits for HTTP clients that do not read, in bytes.
const (
	maxUnsent  = 1 << 20 // on a stream of notifications, or while there is none: what comes then is dropped
	maxAnswers = 4 << 20 // on one response: progress and the like that comes then is dropped
)

// A mailbox queues the messages of one HTTP response, or those for a server over HTTP. To put one in never waits.
type mailbox struct {
	more chan struct{} // has a value when there may be messages

	mu    sync.Mutex
	queue []*message
	size  int           // bytes, also of the message that was taken last and is being sent
	taken int           // bytes of that message
	since time.Time     // when the last message was sent, or the oldest one came
	all   *atomic.Int64 // the sum of the sizes of several; nil if nobody counts them
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
	if b.size == 0 {
		b.since = time.Now()
	}
	b.queue = append(b.queue, m)
	b.add(len(m.raw))
	select {
	case b.more <- struct{}{}:
	default:
	}
	return true
}

// add counts n bytes. The caller holds b.mu.
func (b *mailbox) add(n int) {
	b.size += n
	if b.all != nil {
		b.all.Add(int64(n))
	}
}

// sent is called when the message that was taken last has been sent.
func (b *mailbox) sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(-b.taken)
	b.taken, b.since = 0, time.Now()
	b.shorter()
}

// next takes the oldest message, or returns nil if there is none. The one before has been sent.
func (b *mailbox) next() *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	b.shorter()
	m := b.queue[0]
	b.queue[0] = nil
	b.add(-b.taken)
	b.taken = len(m.raw)
	if b.queue = b.queue[1:]; len(b.queue) > 0 {
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

// waits returns since when nothing has been sent of what waits. It reports false if nothing does.
func (b *mailbox) waits() (since time.Time, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since, b.size > 0
}

func (b *mailbox) isGone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
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
	b.add(-b.size)
	b.gone, b.queue, b.taken = true, nil, 0
	return left
}

package jsonrpc

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Mailbox queues the messages of one HTTP response, or the messages for a server over HTTP. Put never waits.
type Mailbox struct {
	More chan struct{} // has a value when there may be messages

	mu     sync.Mutex
	queue  []*Message
	size   int           // bytes, also of the message that was taken last and is being sent
	taken  int           // bytes of that message
	since  time.Time     // when the last message was sent, or the oldest one came
	All    *atomic.Int64 // the sum of the sizes of several; nil if nobody counts them
	closed bool
	room   chan struct{} // closed when the queue has become shorter; nil if nobody waits for that
}

func NewMailbox() *Mailbox { return &Mailbox{More: make(chan struct{}, 1)} }

// Put queues a message, or returns false if more than most bytes would wait, or the box is closed. If most is 0,
// there is no such bound.
func (b *Mailbox) Put(m *Message, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || most > 0 && b.size+len(m.Raw) > most && b.size > 0 {
		return false
	}
	if b.size == 0 {
		b.since = time.Now()
	}
	b.queue = append(b.queue, m)
	b.add(len(m.Raw))
	select {
	case b.More <- struct{}{}:
	default:
	}
	return true
}

// add counts n bytes. The caller holds b.mu.
func (b *Mailbox) add(n int) {
	b.size += n
	if b.All != nil {
		b.All.Add(int64(n))
	}
}

// Sent records that the message that was taken last has been sent, and frees its room.
func (b *Mailbox) Sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(-b.taken)
	b.taken, b.since = 0, time.Now()
	b.shorter()
}

// Next takes the oldest message, or returns nil if there is none. The message taken before counts as sent.
func (b *Mailbox) Next() *Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	b.shorter()
	m := b.queue[0]
	b.queue[0] = nil
	b.add(-b.taken)
	b.taken = len(m.Raw)
	if b.queue = b.queue[1:]; len(b.queue) > 0 {
		select {
		case b.More <- struct{}{}:
		default:
		}
	}
	return m
}

// Bytes returns how many bytes wait.
func (b *Mailbox) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Waits returns since when no waiting message has been sent. It returns false if no message waits.
func (b *Mailbox) Waits() (since time.Time, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since, b.size > 0
}

func (b *Mailbox) IsGone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Await waits until no more than most bytes wait, or until Close.
func (b *Mailbox) Await(most int) {
	for {
		b.mu.Lock()
		if b.size <= most || b.closed {
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
func (b *Mailbox) shorter() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// Close closes the box, which drops later messages, and returns the messages that wait.
func (b *Mailbox) Close() (left []*Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shorter()
	left = b.queue
	b.add(-b.size)
	b.closed, b.queue, b.taken = true, nil, 0
	return left
}

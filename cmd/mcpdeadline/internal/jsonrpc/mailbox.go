package jsonrpc

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Mailbox queues the messages for one HTTP response, or for a server over HTTP. Put never waits. It is safe for
// concurrent use, but only one goroutine may call Next and Sent.
type Mailbox struct {
	More chan struct{} // has a value when messages may be queued, or the Mailbox is closed

	mu     sync.Mutex // guards the fields below, except All
	queue  []*Message
	size   int           // bytes, including the message that Next returned last, until it has been sent
	taken  int           // bytes of that message; 0 once it has been sent
	since  time.Time     // when a message was last sent, or first queued
	All    *atomic.Int64 // the sum of the sizes of several Mailboxes; may be nil; set before the first Put
	closed bool
	room   sync.Cond // size has decreased, or closed is set
}

func NewMailbox() *Mailbox {
	b := &Mailbox{More: make(chan struct{}, 1)}
	b.room.L = &b.mu
	return b
}

// Put queues a message. It returns false, and drops the message, if the Mailbox is closed, or if other messages wait and
// the sum would exceed most bytes. A most of 0 means no such bound.
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
	b.more()
	return true
}

func (b *Mailbox) more() {
	select {
	case b.More <- struct{}{}:
	default:
	}
}

// add adds n, which may be negative, to size and All. The caller holds b.mu.
func (b *Mailbox) add(n int) {
	b.size += n
	if b.All != nil {
		b.All.Add(int64(n))
	}
}

// Sent records that the message that Next returned last has been sent, so that its bytes no longer count.
func (b *Mailbox) Sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(-b.taken)
	b.taken, b.since = 0, time.Now()
	b.room.Broadcast()
}

// Next removes and returns the oldest message, or returns nil if there is none. The message that Next returned before
// then counts as sent.
func (b *Mailbox) Next() *Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	b.room.Broadcast()
	m := b.queue[0]
	b.queue[0] = nil
	b.add(-b.taken)
	b.taken = len(m.Raw)
	if b.queue = b.queue[1:]; len(b.queue) > 0 {
		b.more()
	}
	return m
}

// Remove removes the first queued message for which chosen returns true, and reports whether there was one.
func (b *Mailbox) Remove(chosen func(*Message) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queue, chosen)
	if i < 0 {
		return false
	}
	b.add(-len(b.queue[i].Raw))
	b.queue = slices.Delete(b.queue, i, i+1)
	b.room.Broadcast()
	return true
}

// Bytes returns the number of bytes that have not been sent.
func (b *Mailbox) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Waits returns the instant since which messages have been waiting and none was sent. The bool is false if no message
// waits.
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
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size > most && !b.closed {
		b.room.Wait()
	}
}

// Close closes the Mailbox, which then drops messages, and returns the queued messages.
func (b *Mailbox) Close() (left []*Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Broadcast()
	left = b.queue
	b.add(-b.size)
	b.closed, b.queue, b.taken = true, nil, 0
	b.more() // for a reader that waits
	return left
}

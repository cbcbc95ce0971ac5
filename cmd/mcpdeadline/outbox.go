package main

import (
	"io"
	"sync"
)

// maxQueue is how many bytes an outbox queues for a server that does not read before put blocks.
const maxQueue = 16 << 20

// An outbox writes messages to a server. A message that the pipe has no room for is queued and written on
// another goroutine, so that a server that does not read does not keep the proxy from reading from the host.
// Other messages are written at once: on an idle machine, waking that goroutine would take longer than all
// else that the proxy does with a message.
type outbox struct {
	now func([]byte) int // writes what the pipe has room for; nil if that is not known

	mu     sync.Mutex
	busy   bool      // the goroutine is writing
	more   sync.Cond // the queue is no longer empty, or closed is set
	room   sync.Cond // the queue has room, or closed is set
	queue  []byte
	closed bool
}

// newOutbox returns an outbox that writes to w until close or a failed write, and then closes w.
func newOutbox(w io.WriteCloser) *outbox {
	o := &outbox{now: writeNow(w)}
	o.more.L, o.room.L = &o.mu, &o.mu
	go func() {
		defer w.Close()
		defer o.close()
		var buf []byte
		for {
			o.mu.Lock()
			for len(o.queue) == 0 && !o.closed {
				o.more.Wait()
			}
			buf, o.queue = o.queue, buf[:0]
			o.busy = len(buf) > 0
			o.mu.Unlock()
			o.room.Broadcast()
			if len(buf) == 0 {
				return
			}
			if _, err := w.Write(buf); err != nil {
				return
			}
			o.mu.Lock()
			o.busy = false
			o.mu.Unlock()
			if cap(buf) > 1<<20 {
				buf = nil
			}
		}
	}()
	return o
}

// put writes or queues a message. It does nothing after close.
func (o *outbox) put(m *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > maxQueue && !o.closed {
		o.room.Wait()
	}
	if o.closed {
		return
	}
	first := len(o.queue) == 0 && !o.busy
	o.queue = append(append(o.queue, m.raw...), '\n')
	if first && o.now != nil {
		o.queue = o.queue[:copy(o.queue, o.queue[o.now(o.queue):])]
	}
	if len(o.queue) > 0 {
		o.more.Signal()
	}
}

// close closes the writer after the queued messages have been written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.more.Signal()
	o.room.Broadcast()
}

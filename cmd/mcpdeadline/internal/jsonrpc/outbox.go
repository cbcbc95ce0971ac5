package jsonrpc

import (
	"io"
	"sync"
	"time"
)

// QueueOf returns the number of queued bytes beyond which the sender of more messages has to wait for the reader, if a
// message has at most max bytes.
func QueueOf(max int) int { return max / 4 }

// writeSize is the number of bytes of one write. It is small, so that Flush sees that a slow reader reads.
const writeSize = 64 << 10

// An Outbox writes messages to a server, a host or a file. Put queues a message, which another goroutine writes, so Put
// never waits for the reader: callers may hold locks, and a call must end on time. A goroutine that forwards messages
// calls Await before Put, without a lock. If Now is set, Put itself writes as much as it can without waiting, because
// waking the goroutine would take longer than the rest of the work on a message.
type Outbox struct {
	Now  func([]byte) int // writes without waiting, and returns the number of bytes; may be nil; see WriteNow
	Over chan struct{}    // closed when the Outbox has ended
	Err  error            // the error of a write; set before Over is closed

	mu          sync.Mutex // guards the fields below
	more        sync.Cond  // the queue is no longer empty, or closed is set
	room        sync.Cond  // fewer bytes wait, or closed or unthrottled is set
	queue       []byte
	writing     []byte // the bytes that the goroutine has still to write; they precede queue
	written     int64  // number of bytes that the goroutine has written
	closed      bool
	unthrottled bool // Await does not wait any more
}

// NewOutbox returns an Outbox that writes to w. It ends when everything has been written after Close, or when a write
// fails, and then calls ended.
func NewOutbox(w io.Writer, ended func()) *Outbox {
	o := &Outbox{Over: make(chan struct{})}
	o.more.L, o.room.L = &o.mu, &o.mu
	go func() {
		defer ended()
		defer close(o.Over)
		defer o.Close()
		o.Err = o.writeAll(w)
	}()
	return o
}

func (o *Outbox) writeAll(w io.Writer) error {
	var buf []byte
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.more.Wait()
		}
		buf, o.queue = o.queue, buf[:0]
		o.writing = buf
		o.mu.Unlock()
		if len(buf) == 0 {
			return nil
		}
		for rest := buf; len(rest) > 0; {
			n, err := w.Write(rest[:min(len(rest), writeSize)])
			rest = rest[n:]
			o.mu.Lock()
			o.writing, o.written = rest, o.written+int64(n)
			o.mu.Unlock()
			o.room.Broadcast()
			if err != nil {
				return err
			}
		}
		if cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// Put writes or queues a message and a newline, without waiting. It does nothing after Close.
func (o *Outbox) Put(m *Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(m.Raw, "\n")
}

// Offer writes or queues a text, without waiting. It returns false, and drops the text, if more than most bytes wait
// already. After Close it drops the text and returns true.
func (o *Outbox) Offer(text []byte, most int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue)+len(o.writing) > most {
		return false
	}
	o.put(text, "")
	return true
}

// put writes or queues text and end. The caller holds o.mu.
func (o *Outbox) put(text []byte, end string) {
	if o.closed {
		return
	}
	first := o.Now != nil && len(o.queue) == 0 && len(o.writing) == 0
	o.queue = append(append(o.queue, text...), end...)
	if first {
		o.queue = o.queue[:copy(o.queue, o.queue[o.Now(o.queue):])]
	}
	if len(o.queue) > 0 {
		o.more.Signal()
	}
}

// Await waits until no more than most bytes wait for the reader, or until Close or Ease.
func (o *Outbox) Await(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue)+len(o.writing) > most && !o.closed && !o.unthrottled {
		o.room.Wait()
	}
}

// Ease makes all calls of Await return, now and in future.
func (o *Outbox) Ease() {
	o.mu.Lock()
	o.unthrottled = true
	o.mu.Unlock()
	o.room.Broadcast()
}

// Close ends the Outbox once the queued messages have been written. It does not wait for that.
func (o *Outbox) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.more.Signal()
	o.room.Broadcast()
}

// Flush closes the Outbox and waits until everything has been written, but no longer than limit, and only as long as
// each period of idle sees a write. It returns the number of bytes that were not written.
func (o *Outbox) Flush(idle, limit time.Duration) (left int) {
	o.Close()
	state := func() (int, int64) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.queue) + len(o.writing), o.written
	}
	for begun := time.Now(); ; {
		_, before := state()
		select {
		case <-o.Over:
			left, _ = state()
			return left
		case <-time.After(min(idle, limit-time.Since(begun))):
		}
		if left, written := state(); written == before || time.Since(begun) >= limit {
			return left
		}
	}
}

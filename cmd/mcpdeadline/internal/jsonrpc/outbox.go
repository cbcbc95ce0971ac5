package jsonrpc

import (
	"io"
	"sync"
	"time"
)

// QueueOf returns how many bytes may wait for somebody who does not read before those who send more have to wait. A
// message has up to max bytes.
func QueueOf(max int) int { return max / 4 }

// writeSize is how many bytes an outbox writes at a time: small enough to see that a slow reader reads.
const writeSize = 64 << 10

// An Outbox writes messages to a server, to a host or to a file. A message that there is no room for is queued
// and written on another goroutine, so put never waits for a reader: it is called with locks held, and by what
// ends a call. Code that passes on what another side sends calls await first, without a lock. To a server, messages
// are written at once where that can be done without waiting: on an idle machine, waking that goroutine would
// take longer than all else that the proxy does with a message.
type Outbox struct {
	Now  func([]byte) int // writes what there is room for; nil if that is not known
	Over chan struct{}    // closed when nothing more will be written
	Err  error            // of the write that failed; set before over is closed

	mu          sync.Mutex
	more        sync.Cond // the queue is no longer empty, or closed is set
	room        sync.Cond // the queue has become shorter, or nobody has to wait any more
	queue       []byte
	writing     []byte // what the goroutine has still to write
	written     int64  // bytes
	closed      bool
	unthrottled bool // nobody waits for room any more
}

// NewOutbox returns an outbox that writes to w until Close or a failed write, and then calls ended.
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

// Put writes or queues a message. It does nothing after Close.
func (o *Outbox) Put(m *Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(m.Raw, "\n")
}

// Offer writes or queues a text, and reports false if more than most bytes wait already.
func (o *Outbox) Offer(text []byte, most int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue)+len(o.writing) > most {
		return false
	}
	o.put(text, "")
	return true
}

// put is Put for a caller that holds o.mu.
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

// Ease lets everybody who waits for room go on.
func (o *Outbox) Ease() {
	o.mu.Lock()
	o.unthrottled = true
	o.mu.Unlock()
	o.room.Broadcast()
}

// Close ends the outbox after the queued messages have been written.
func (o *Outbox) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.more.Signal()
	o.room.Broadcast()
}

// Flush closes the outbox and waits until everything has been written. It gives up when nothing was read for
// idle, and after limit in any case. It returns how many bytes were not written.
func (o *Outbox) Flush(idle, limit time.Duration) (left int) {
	o.Close()
	state := func() (int, int64) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.queue) + len(o.writing), o.written
	}
	for begun := time.Now(); ; {
		_, before := state()
		timer := time.NewTimer(max(min(idle, limit-time.Since(begun)), 0))
		select {
		case <-o.Over:
			timer.Stop()
			left, _ = state()
			return left
		case <-timer.C:
		}
		if left, written := state(); written == before || time.Since(begun) >= limit {
			return left
		}
	}
}

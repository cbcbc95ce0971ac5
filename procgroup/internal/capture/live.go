package capture

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// liveBacklog is the largest number of bytes that wait for a callback. If more arrive, all the waiting bytes are
// skipped: a callback that follows the output live needs the newest.
const liveBacklog = 1 << 20

// live passes the output to the callback, on a separate goroutine. Output that arrives while the callback is busy is
// joined, so that many small writes become one chunk.
type live struct {
	fn   func(Chunk)
	fail func(error) // see Guard

	mu        sync.Mutex // guards the fields below, down to abandoned
	pending   batch
	added     int64         // bytes passed to add
	delivered int64         // bytes passed to fn
	closed    bool          // no more output will be added
	abandoned bool          // no call of fn begins any more, except one that deliver has just decided on
	wake      chan struct{} // has a value after a call of change
	done      chan struct{} // closed when the goroutine has ended
	err       error         // of a panic or Goexit in fn; valid once done is closed
}

// A batch is a sequence of chunks. data holds the bytes of all of them, one after the other.
type batch struct {
	data   []byte
	chunks []liveChunk
}

type liveChunk struct {
	stream  int
	n       int
	skipped int64
	last    bool
}

func newLive(fn func(Chunk), fail func(error)) *live {
	l := &live{fn: fn, fail: fail, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

// add queues a copy of p, output of stream s, for the callback, and the end of s if last is true. If more than
// liveBacklog bytes would wait, it drops what waits, and the callback is passed their number. It does not wait for the
// callback.
func (l *live) add(s int, p []byte, last bool) {
	l.change(func() {
		l.pending.add(s, p, last)
		l.added += int64(len(p))
	})
}

func (b *batch) add(s int, p []byte, last bool) {
	if len(b.data) > 0 && len(b.data)+len(p) > liveBacklog {
		b.skip()
	}
	b.data = append(b.data, p...)
	if n := len(b.chunks) - 1; n >= 0 && b.chunks[n].stream == s {
		b.chunks[n].n += len(p)
		b.chunks[n].last = last
		return
	}
	b.chunks = append(b.chunks, liveChunk{stream: s, n: len(p), last: last})
}

// skip drops the data. For each stream it leaves one chunk with the number of skipped bytes, and with the end of the
// stream if that was queued.
func (b *batch) skip() {
	var all [2]liveChunk
	for _, c := range b.chunks {
		a := &all[c.stream]
		a.skipped += int64(c.n) + c.skipped
		a.last = a.last || c.last
	}
	b.data, b.chunks = b.data[:0], b.chunks[:0]
	for s, a := range all {
		if a.skipped > 0 || a.last {
			a.stream = s
			b.chunks = append(b.chunks, a)
		}
	}
}

// close declares that no more output will be added.
func (l *live) close() { l.change(func() { l.closed = true }) }

// abandon drops the output that waits. It does not wait for a call of the callback in progress, and one more call may
// begin, which deliver has just decided on; see finish.
func (l *live) abandon() { l.change(func() { l.abandoned = true }) }

// change calls fn with the lock held, and wakes the goroutine.
func (l *live) change(fn func()) {
	l.mu.Lock()
	fn()
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *live) run() {
	defer close(l.done)
	Guard(l.deliverAll, func(err error) {
		l.err = err
		l.fail(err)
	})
}

// deliverAll calls the callback for each chunk. It returns after abandon, once the call in progress has returned, or
// after close, once all chunks are delivered.
func (l *live) deliverAll() {
	var taken batch
	for {
		<-l.wake
		for l.take(&taken) && l.deliver(&taken) {
		}
		l.mu.Lock()
		over := l.abandoned || (l.closed && len(l.pending.chunks) == 0)
		l.mu.Unlock()
		if over {
			return
		}
	}
}

// take stores the pending batch in *b and reports whether it has any chunks. It reuses the memory of *b, a batch that
// has been delivered.
func (l *live) take(b *batch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.data, b.chunks = b.data[:0], b.chunks[:0]
	*b, l.pending = l.pending, *b
	return len(b.chunks) > 0
}

func (l *live) deliver(b *batch) bool {
	data := b.data
	for _, c := range b.chunks {
		l.mu.Lock()
		abandoned := l.abandoned
		if !abandoned {
			l.delivered += int64(c.n)
		}
		l.mu.Unlock()
		if abandoned {
			return false
		}
		l.fn(Chunk{Stderr: c.stream == 1, Data: data[:c.n:c.n], Skipped: c.skipped, Last: c.last})
		data = data[c.n:]
	}
	return true
}

// finish waits until all output is delivered, but not beyond until. It abandons the rest closeTime before until, and
// then waits closeTime: deliver may just have found that it may make one more call, which must not begin after finish
// has returned. finish returns the number of bytes that the callback did not get, and the error if the callback
// panicked or called runtime.Goexit.
func (l *live) finish(until time.Time) (skipped int64, err error) {
	if !patient.Wait(l.done, until.Add(-closeTime)) {
		l.abandon()
		patient.Wait(l.done, time.Now().Add(closeTime))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		err = l.err
	default:
	}
	return l.added - l.delivered, err
}

package stream

import "time"

// Bounds of the wait before a stream is reopened. SPEC 9.1.
const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 10 * time.Second
	// minDelay keeps the client from polling, in a tight loop, a server that asks for no wait at
	// all.
	minDelay = 100 * time.Millisecond
)

type backoff struct{ first, next time.Duration }

// delay returns how long to wait now, and makes the next wait longer by a fifth.
func (b *backoff) delay() time.Duration {
	if b.first == 0 {
		b.first = firstDelay
	}
	d := max(b.next, b.first)
	b.next = min(d+d/5, maxDelay)
	return d
}

// reset makes the next wait the first one again.
func (b *backoff) reset() { b.next = 0 }

// ask sets the first delay to the server's wish, within bounds.
func (b *backoff) ask(d time.Duration) { b.first = min(max(d, minDelay), maxDelay) }

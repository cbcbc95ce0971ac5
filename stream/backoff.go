package stream

import "time"

// How long to wait before a stream is reopened. SPEC 9.1.
const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 10 * time.Second
	// minDelay keeps a server that asks for no wait at all from being polled in a
	// tight loop.
	minDelay = 100 * time.Millisecond
)

type backoff struct{ first, next time.Duration }

// delay is how long to wait now; the next wait is longer by a fifth.
func (b *backoff) delay() time.Duration {
	if b.first == 0 {
		b.first = firstDelay
	}
	d := max(b.next, b.first)
	b.next = min(d+d/5, maxDelay)
	return d
}

// reset begins afresh.
func (b *backoff) reset() { b.next = 0 }

// ask sets the first delay to what the server asks for, within bounds.
func (b *backoff) ask(d time.Duration) { b.first = min(max(d, minDelay), maxDelay) }
